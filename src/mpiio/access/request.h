// Requests of nonblocking calls.
//
// A request is one of MPI's generalized requests (MPI-4.1, section 13.2), so that it can be waited
// for together with any others. The thread that does the work calls no MPI for it: when the work is
// over, the program's next call that waits or asks completes the request first (entry_wait.cpp), so
// that requests need no particular thread level. Two more things are added there: the program
// sleeps while ours are under way, and an error goes to the file's error handler instead of the one
// of MPI_COMM_WORLD, which is fatal by default.
#pragma once

#include <mpi.h>

#include <list>
#include <memory>
#include <span>

#include "file/background.h"
#include "mpiio/access/access.h"

namespace shima {

// A request that failed, as seen by the thread that completes it.
struct RequestFailure {
  MPI_Request request;
  MPI_File file;
  Error error;
};

// Starts a request for an access, which `task`, made here, carries out. On an error `task` is
// empty.
[[nodiscard]] Status start_request(MPI_File file, PreparedAccess prepared, Task& task,
                                   MPI_Request* request);

// Whether any request of ours exists; cheap.
[[nodiscard]] bool any_requests();
// Whether one of these is ours; cheap too.
[[nodiscard]] bool any_ours(std::span<const MPI_Request> requests);
// What is behind a request, or null if it is not ours.
[[nodiscard]] std::shared_ptr<Pending> pending_of(MPI_Request request);
// Tells MPI that those of ours whose work is over are complete.
void complete_finished(std::span<const MPI_Request> requests);

// Whether take_failures() would give any.
[[nodiscard]] bool has_failures();
// Failures that MPI asked about in this thread since the last call of this function.
[[nodiscard]] std::list<RequestFailure> take_failures();

}  // namespace shima
