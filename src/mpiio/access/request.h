// Requests of nonblocking calls.
//
// A request is one of MPI's generalized requests (MPI-4.1, section 13.2), so that a program can
// wait for it together with any others. The work calls no MPI for it, in whatever thread: when the
// work is over, the program's next call that waits or tests completes the request first
// (entry_wait.cpp), so that requests need no particular thread level. The calls in entry_wait.cpp
// add two more things: the program sleeps while our requests are under way, and an error is passed
// to the file's error handler instead of that of MPI_COMM_WORLD, which is fatal by default.
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

// Starts a request for an access. `task`, created here, executes it; empty after an error.
[[nodiscard]] Status start_request(MPI_File file, PreparedAccess prepared, Task& task,
                                   MPI_Request* request);

// Whether any request of ours exists; cheap.
[[nodiscard]] bool any_requests();
// Whether one of these is ours; cheap too.
[[nodiscard]] bool any_ours(std::span<const MPI_Request> requests);
// The work of a request; null if the request is not ours.
[[nodiscard]] std::shared_ptr<Pending> pending_of(MPI_Request request);
// Marks as complete in MPI those of our requests whose work is over.
void complete_finished(std::span<const MPI_Request> requests);

// Whether take_failures() would give any.
[[nodiscard]] bool has_failures();
// The failures whose status MPI has queried in this thread since the last call of this function.
[[nodiscard]] std::list<RequestFailure> take_failures();

}  // namespace shima
