#!/bin/bash
# FLAVOURS: openmpi-debian
# Debian's PnetCDF and parallel netCDF-4, unmodified, under Shima and on the MPI's own MPI-IO: both write the same
# data (PnetCDF: the same file, byte for byte), and each reads the other's.
set -euo pipefail
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
export HDF5_USE_FILE_LOCKING=FALSE

source_dir=$SHIMA_SOURCE_DIR/tests/mpi
libraries=/usr/lib/$(gcc -dumpmachine)
netcdf=$libraries/netcdf/mpi
if [ ! -e "$libraries/libpnetcdf.so" ] || [ ! -e "$netcdf/include/netcdf_par.h" ]; then
  echo "skipped: no libpnetcdf-dev or libnetcdf-mpi-dev"
  exit 77
fi
"$MPICC" -std=gnu11 -O1 -Wall -o pnetcdf "$source_dir/pnetcdf.c" -lpnetcdf
"$MPICC" -std=gnu11 -O1 -Wall -I"$netcdf/include" -o netcdf4 "$source_dir/netcdf4.c" -lnetcdf_mpi

stock() { "$MPIEXEC" -n 4 "$@"; }
shima() { SHIMA_STATS=$PWD/stats.json "$SHIMA" run -n 4 --mpiexec "$MPIEXEC" "$@"; }

for program in pnetcdf netcdf4; do
  rm -f stats.json
  stock ./$program write stock.nc
  shima ./$program write shima.nc
  [ $program = netcdf4 ] || cmp stock.nc shima.nc
  stock ./$program read shima.nc
  shima ./$program read stock.nc
  [ "$(wc -l <stats.json)" -ge 2 ] || { echo "Shima did not serve the files of $program"; exit 1; }
done
