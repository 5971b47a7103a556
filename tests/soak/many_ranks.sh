#!/bin/bash
# FLAVOURS: mpich-wheel
# TIMEOUT: 1200
# PROCESSORS: 2
# 256 ranks of one node write and read one file of 1 MiB by columns; it must equal the one that the MPI writes.
set -euo pipefail
ranks=256
arguments=(--size-mib 1 --piece 64 --op both --way COL)

"$MPICC" -O1 -o columns "$SHIMA_SOURCE_DIR/examples/columns.c"
"$MPIEXEC" -n 4 ./columns "${arguments[@]}" --file stock >stock.out 2>&1 </dev/null || { cat stock.out; exit 1; }
timeout 1000 "$SHIMA" run -n $ranks --mpiexec "$MPIEXEC" ./columns "${arguments[@]}" --file ours </dev/null
cmp stock ours
