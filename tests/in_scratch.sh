#!/bin/bash
# in_scratch.sh DIRECTORY SECONDS command...: runs a test's command in an empty directory of its own.  At the time
# limit the whole job gets SIGTERM, so that a launcher can end its ranks, and SIGKILL five seconds later.  If permitted,
# the command has its own /dev/shm: an MPI whose ranks are killed leaves its segments there, gigabytes in all.  A command
# that ends with 75 met a known fault of the MPI below Shima and is run again, at most twice.
set -euo pipefail
# In MPI_Finalize a rank of Open MPI 4 tells mpiexec that it ends, and waits at most 2 s for the answer. If mpiexec gets no
# core for so long, it calls a job a failure whose ranks have all ended with 0.
export OMPI_MCA_orte_allowed_exit_without_sync=1
self=$(realpath "$0")
directory=$1
seconds=$2
repeats=${SHIMA_TEST_REPEATS:-2}
rm -rf "$directory"
mkdir -p "$directory"
cd "$directory"
own_shm=()
if unshare --mount mount -t tmpfs shima-test /dev/shm 2>/dev/null; then
  # shellcheck disable=SC2016
  own_shm=(unshare --mount sh -c 'mount -t tmpfs shima-test /dev/shm && exec "$0" "$@"')
fi
status=0
timeout -k 5 "$seconds" "${own_shm[@]}" "${@:3}" </dev/null || status=$?
if [ $status = 124 ] || [ $status = 137 ]; then
  echo "in_scratch: ended after ${seconds} s: ${*:3}" >&2
fi
# A failed test may leave launchers and ranks in sessions of their own; those that run in its directory are killed.
if [ $status != 0 ]; then
  cd /
  find /proc -maxdepth 2 -path '/proc/[0-9]*/cwd' \( -lname "$directory" -o -lname "$directory/*" \) 2>/dev/null |
    while IFS=/ read -r _ _ pid _; do
      echo "in_scratch: killed what was left: $(tr '\0' ' ' <"/proc/$pid/cmdline" | head -c 200)" >&2
      kill -KILL "$pid" 2>/dev/null || true
    done || true
fi
if [ $status = 75 ] && [ "$repeats" -gt 0 ]; then
  SHIMA_TEST_REPEATS=$((repeats - 1)) exec "$self" "$@"
fi
[ $status != 0 ] || rm -rf "$directory" 2>/dev/null || true
exit $status
