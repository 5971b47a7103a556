# Sourced by the tests that run mpi4py's suite, unmodified from its source package.  Options of the suite: -i PATTERN includes
# modules, -e PATTERN excludes them.
# shellcheck shell=bash
# shellcheck source=tests/python/task_python.sh
. "$SHIMA_SOURCE_DIR/tests/python/task_python.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export SHIMA_LOG=error SHIMA_ONE_SPACE=required TMPDIR=$PWD

suite=$SHIMA_SOURCE_DIR/build/deps/mpi4py-source/test/main.py
python=$MPI_PREFIX/bin/python
if [ ! -f "$suite" ] || ! "$python" -c 'import mpi4py' 2>/dev/null; then
  echo "skipped: no mpi4py, or not its source package (scripts/setup test)"
  exit 77
fi
task_python "$python"

# The names of the tests that did not pass, from the output of all ranks.
not_passed() { sed -n 's/^\(FAIL\|ERROR\): //p' "$1" | sort -u; }

# ran_at_least RANKS TESTS: each rank prints how many it ran; few would mean that the suite was not found.
ran_at_least() {
  local counts
  counts=$(grep -o 'Ran [0-9]* tests' out | cut -d' ' -f2 | sort -n)  # anywhere: other ranks' dots may be on that line
  [ "$(wc -l <<<"$counts")" = "$1" ] && [ "$(head -n 1 <<<"$counts")" -ge "$2" ] && return
  echo "not $1 ranks with $2 tests or more each: $counts"
  return 1
}

# run_as_tasks RANKS options...: all ranks as tasks of one space; the output goes to the file "out".
run_as_tasks() {
  local ranks=$1 status=0
  shift
  "$SHIMA" run --one-space -n "$ranks" --mpiexec "$MPIEXEC" "$task_python" "$SHIMA_SOURCE_DIR/tests/python/as_task.py" "$suite" \
    "$@" >out 2>&1 </dev/null || status=$?
  grep -qx "all $ranks ranks are tasks of one space" out || return 1
  return $status
}
