#!/bin/bash
# The behaviour of ranks on a file system that is really full: see full_disk.c.  The small tmpfs is
# mounted in a mount
# namespace of this script and disappears with it.
set -euo pipefail
if [ "${1:-}" != inside ]; then
  if ! unshare --mount --propagation private true 2>/dev/null; then
    echo "skipped: this user cannot mount (needs root)"
    exit 77
  fi
  exec unshare --mount --propagation private "$0" inside
fi
"$MPICC" -std=gnu11 -O1 -Wall -I"$SHIMA_SOURCE_DIR/tests" -o full_disk "$SHIMA_SOURCE_DIR/tests/fault/full_disk.c"
mkdir small
mount -t tmpfs -o size=6m shima-full-disk small
cd small
"$SHIMA" run -n 4 --mpiexec "$MPIEXEC" ../full_disk
cd ..
umount small
