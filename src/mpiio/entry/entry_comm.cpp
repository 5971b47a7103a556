// The call of communicators that PnetCDF makes before it looks at a file by POSIX calls.
//
// Only the name MPI_Comm_rank is taken over: PnetCDF uses that one, and what Shima calls itself by
// PMPI_Comm_rank is the MPI's own.
#include "mpiio/mpi/real_mpi.h"
#include "mpiio/pnetcdf/pnetcdf.h"

extern "C" decltype(MPI_Comm_rank) MPI_Comm_rank __attribute__((visibility("default")));

int MPI_Comm_rank(MPI_Comm comm, int* rank) {
  shima::notice_pnetcdf();
  return PMPI_Comm_rank(comm, rank);
}
