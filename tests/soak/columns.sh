#!/bin/bash
# TIMEOUT: 3600
# PROCESSORS: 2
# An array distributed by columns, written and read by eight ranks that are tasks of one space, 200 times.  Each file must equal
# the one that the MPI writes, and no run may fail. This finds races in the start, end and placement of tasks.
set -euo pipefail
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export SHIMA_ONE_SPACE=required
runs=${SHIMA_SOAK_RUNS:-200}
arguments=(--size-mib 2 --op both)
ways=(UT FV COL)

"$MPICC" -O1 -o columns "$SHIMA_SOURCE_DIR/examples/columns.c"
"$MPIEXEC" -n 8 ./columns "${arguments[@]}" --way COL --file stock >stock.out 2>&1 </dev/null || { cat stock.out; exit 1; }
[ "$(stat -c %s stock)" -gt 1000000 ]

failed=0
for ((run = 0; run < runs; ++run)); do
  rm -f tasks
  status=0
  timeout 60 "$SHIMA" run --one-space -n 8 --mpiexec "$MPIEXEC" ./columns "${arguments[@]}" --way "${ways[run % 3]}" --file tasks \
    >out 2>&1 </dev/null || status=$?
  if [ $status = 0 ] && cmp stock tasks; then continue; fi
  failed=$((failed + 1))
  echo "FAIL: run $run (${ways[run % 3]}) ended with status $status:"
  cat out
  [ $failed -lt 5 ] || break
done
echo "$failed of $run runs failed"
[ $failed = 0 ]
