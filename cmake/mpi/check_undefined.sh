#!/bin/bash
# check_undefined.sh LIBRARY: checks the undefined symbols of a build. Calls of MPI are legal, Shima's own are not: with
# lazy binding they would only fail when called. A call that MPI-4 introduced must be weak: an older MPI of the same
# soname lacks it, and a program that binds at once (Python, LD_BIND_NOW) could not start.
set -euo pipefail
late='PMPI_(Session_.*|.*_from_session.*|.*_from_group|.*_c|Type_get_value_index|Comm_idup_with_info)'
if missing=$(nm -D --undefined-only -C "$1" | grep -E " (shima|fmt|spdlog)::| U $late\$"); then
  echo "$1 lacks, or must declare weak (#pragma weak):" >&2
  echo "$missing" >&2
  rm -f "$1"
  exit 1
fi
