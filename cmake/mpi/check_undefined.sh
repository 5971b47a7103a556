#!/bin/bash
# check_undefined.sh LIBRARY: a preload library may leave MPI's calls undefined, but none of our own: those would only
# be missed when they are called, since it is bound lazily.
set -euo pipefail
if missing=$(nm -D --undefined-only -C "$1" | grep -E ' (shima|fmt|spdlog)::'); then
  echo "$1 lacks:" >&2
  echo "$missing" >&2
  rm -f "$1"
  exit 1
fi
