#!/bin/bash
# FLAVOURS: mpich-debian openmpi-debian
# Debian's parallel HDF5, unmodified, under Shima and on the MPI's own MPI-IO: both write the same file, byte for
# byte, and each reads the other's.  See hdf5.c.
set -euo pipefail
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export HDF5_USE_FILE_LOCKING=FALSE

compiler=h5pcc.$MPI_FAMILY
if ! command -v "$compiler" >/dev/null; then
  echo "skipped: no $compiler (libhdf5-$MPI_FAMILY-dev)"
  exit 77
fi
"$compiler" -std=gnu11 -O1 -Wall -I"$SHIMA_SOURCE_DIR/tests" -o hdf5 "$SHIMA_SOURCE_DIR/tests/mpi/hdf5.c"

stock() { "$MPIEXEC" -n 4 ./hdf5 "$@"; }
shima() { SHIMA_STATS=$PWD/stats.json "$SHIMA" run -n 4 --mpiexec "$MPIEXEC" ./hdf5 "$@"; }

stock write stock.h5
shima write shima.h5
cmp stock.h5 shima.h5
stock read shima.h5
shima read stock.h5
[ "$(wc -l <stats.json)" -ge 2 ] || { echo "Shima did not serve the files"; exit 1; }
