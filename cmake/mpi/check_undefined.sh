#!/bin/bash
# check_undefined.sh LIBRARY: what a build may leave undefined. MPI's calls, but none of our own: those would only
# be missed when they are called, since it is bound lazily. A call that came with MPI-4 must be weak: an older MPI of
# the same soname lacks it, and a program that binds at once (Python, LD_BIND_NOW) could not start.
set -euo pipefail
late='PMPI_(Session_.*|.*_from_session.*|.*_from_group|.*_c|Type_get_value_index|Comm_idup_with_info)'
if missing=$(nm -D --undefined-only -C "$1" | grep -E " (shima|fmt|spdlog)::| U $late\$"); then
  echo "$1 lacks, or must declare weak (#pragma weak):" >&2
  echo "$missing" >&2
  rm -f "$1"
  exit 1
fi
