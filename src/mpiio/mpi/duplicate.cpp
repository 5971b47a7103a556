#include "mpiio/mpi/duplicate.h"

#include <new>

namespace shima {

// If a rank is lost, the request stays under way, and the MPI may still write the result.
Result<MPI_Comm> duplicate(MPI_Comm comm, const Peers& peers) {
  constexpr const char* doing = "duplicating a communicator";
  thread_local MPI_Comm reserve = MPI_COMM_NULL;
  auto* const heap = new (std::nothrow) MPI_Comm(MPI_COMM_NULL);
  MPI_Comm* const made = heap != nullptr ? heap : &reserve;
  MPI_Request request = MPI_REQUEST_NULL;
  const PeerWatch watch(peers);
  SHIMA_TRY(watch.check_now());
  SHIMA_TRY(watch.explain(checked(PMPI_Comm_idup(comm, made, &request), doing)));
  SHIMA_TRY(await(request, doing, peers));
  const MPI_Comm result = *made;
  delete heap;
  PMPI_Comm_set_errhandler(result, MPI_ERRORS_RETURN);
  return result;
}

}  // namespace shima
