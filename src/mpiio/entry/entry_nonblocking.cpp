// Nonblocking reading and writing: a file's thread does the work, a request tells when it is over.
#include "mpiio/access/access.h"
#include "mpiio/access/request.h"
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
  Task task;
  SHIMA_TRY(start_request(fh, std::move(prepared), task, request));
  queue(&file.alone(), std::move(task));
  return {};
}

// The others must hear of an error, in the order of the calls.
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

int start(MPI_File fh, const Access& access, const Buffer& buffer, MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  return on_file(fh, [&](OpenFile& file) {
    return access.scope == Access::Scope::together
               ? start_together(file, fh, access, buffer, request)
               : start_alone(file, fh, access, buffer, request);
  });
}

constexpr auto reading = Direction::read;
constexpr auto writing = Direction::write;
constexpr auto alone = Access::Scope::alone;
constexpr auto together = Access::Scope::together;
constexpr auto individual = Access::Pointer::individual;
constexpr auto shared = Access::Pointer::shared;
constexpr auto explicit_offset = Access::Pointer::explicit_offset;

}  // namespace
}  // namespace shima

using namespace shima;

#define SHIMA_START(name, direction, scope, pointer, memory, count_type)                \
  int MPI_File_##name(MPI_File fh, memory buf, count_type count, MPI_Datatype datatype, \
                      MPI_Request* request) {                                           \
    return start(fh, {direction, scope, pointer}, {buf, count, datatype}, request);     \
  }                                                                                     \
  SHIMA_EXPORT(File_##name)
#define SHIMA_START_AT(name, direction, scope, memory, count_type)                        \
  int MPI_File_##name(MPI_File fh, MPI_Offset offset, memory buf, count_type count,       \
                      MPI_Datatype datatype, MPI_Request* request) {                      \
    return start(fh, {direction, scope, explicit_offset, offset}, {buf, count, datatype}, \
                 request);                                                                \
  }                                                                                       \
  SHIMA_EXPORT(File_##name)

#define SHIMA_STARTS(suffix, count_type)                                                   \
  SHIMA_START(iread##suffix, reading, alone, individual, void*, count_type);               \
  SHIMA_START(iread_all##suffix, reading, together, individual, void*, count_type);        \
  SHIMA_START(iread_shared##suffix, reading, alone, shared, void*, count_type);            \
  SHIMA_START(iwrite##suffix, writing, alone, individual, const void*, count_type);        \
  SHIMA_START(iwrite_all##suffix, writing, together, individual, const void*, count_type); \
  SHIMA_START(iwrite_shared##suffix, writing, alone, shared, const void*, count_type);     \
  SHIMA_START_AT(iread_at##suffix, reading, alone, void*, count_type);                     \
  SHIMA_START_AT(iread_at_all##suffix, reading, together, void*, count_type);              \
  SHIMA_START_AT(iwrite_at##suffix, writing, alone, const void*, count_type);              \
  SHIMA_START_AT(iwrite_at_all##suffix, writing, together, const void*, count_type)

SHIMA_STARTS(, int);
#if SHIMA_LARGE_COUNTS
SHIMA_STARTS(_c, MPI_Count);
#endif
