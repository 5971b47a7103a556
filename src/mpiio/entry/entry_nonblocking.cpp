// Nonblocking reads and writes: a thread of the file does the work, a request tells when it is
// over.
#include "mpiio/access/access.h"
#include "mpiio/access/request.h"
#include "mpiio/entry/access_table.h"
#include "mpiio/entry/entry.h"
#include "mpiio/file/thread_level.h"

namespace shima {
namespace {

void queue(Worker* worker, Task task) {
  if (worker != nullptr) return worker->add(std::move(task));
  task.run();
}

Status start_alone(OpenFile& file, MPI_File fh, const Access& access, const Buffer& buffer,
                   MPI_Request* request) {
  PreparedAccess prepared = prepare(file, access, buffer);
  SHIMA_TRY(prepared.status);
  const bool by_caller = prepared.by_caller && file.alone().is_idle();
  Task task;
  SHIMA_TRY(start_request(fh, std::move(prepared), task, request));
  queue(by_caller ? nullptr : &file.alone(), std::move(task));
  return {};
}

// The other members must learn of an error, in the order of the calls.
Status start_together(OpenFile& file, MPI_File fh, const Access& access, const Buffer& buffer,
                      MPI_Request* request) {
  SHIMA_TRY(file.check_no_split());
  const bool in_background = may_run_in_background(file);
  Task task;
  const Status status = caught([&]() -> Status {
    PreparedAccess prepared = prepare(file, access, buffer);
    if (prepared.status) return start_request(fh, std::move(prepared), task, request);
    task = Task(std::move(prepared.work), nullptr);
    return prepared.status;
  });
  if (task) {
    queue(in_background ? &file.together() : nullptr, std::move(task));
  } else {
    file.take_part_with_error(status.error().code, access.pointer == Access::Pointer::shared,
                              in_background);
  }
  return status;
}

int start(MPI_File fh, Access access, const Buffer& buffer, MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  access.mode = call::Mode::nonblocking;
  return on_file(fh, [&](OpenFile& file) {
    return access.scope == Access::Scope::together
               ? start_together(file, fh, access, buffer, request)
               : start_alone(file, fh, access, buffer, request);
  });
}

}  // namespace
}  // namespace shima

using namespace shima;

SHIMA_ACCESSES(start, MPI_Request, i, , int);
#if SHIMA_LARGE_COUNTS
SHIMA_ACCESSES(start, MPI_Request, i, _c, MPI_Count);
#endif
