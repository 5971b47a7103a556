#!/bin/bash
# FLAVOURS: mpich-debian openmpi-debian
# Fortran programs with each of MPI's three bindings, compiled by the stock compiler, run under Shima: data, nonblocking
# calls, and procedures that MPI calls back in Fortran's convention.
set -euo pipefail
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export SHIMA_LOG=error

compiler=mpif90.$MPI_FAMILY
if ! command -v "$compiler" >/dev/null || ! command -v gfortran >/dev/null; then
  echo "skipped: no $compiler (gfortran and lib$MPI_FAMILY-dev)"
  exit 77
fi
for source in mpif.f use_mpi.f90 use_mpi_f08.f90; do
  program=${source%.*}
  "$compiler" -O1 -Wall -Wno-unused-dummy-argument -o "$program" "$SHIMA_SOURCE_DIR/tests/mpi/fortran/$source"
  SHIMA_STATS=$PWD/$program.json "$SHIMA" run -n 3 --mpiexec "$MPIEXEC" "./$program"
  [ -s "$program.json" ] || { echo "Shima did not serve $program"; exit 1; }
  # All bindings write the same file: the letters 'a' + 10 * rank, interleaved in groups of ten, twice.
  perl -e 'print chr(97 + 10 * $_) x 40 for 0..2' >expected
  cmp expected "$program.out" || { echo "$program wrote other bytes"; exit 1; }
done
