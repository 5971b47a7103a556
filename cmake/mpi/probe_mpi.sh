#!/bin/bash
# probe_mpi.sh DIRECTORY MPICC MPIEXEC: can this MPI compile a program and run it as one job of two ranks here?
set -euo pipefail
mkdir -p "$1"
cd "$1"
cat >probe.c <<'C'
#include <mpi.h>
int main(int argc, char **argv)
{
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Finalize();
    return size == 2 ? 0 : 1;
}
C
"$2" -o probe probe.c
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
timeout 60 "$3" -n 2 ./probe
