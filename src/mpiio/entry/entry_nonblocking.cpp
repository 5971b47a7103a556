// Nonblocking reading and writing: a file's thread does the work, a request tells when it is over.
#include "mpiio/access/access.h"
#include "mpiio/access/request.h"
#include "mpiio/entry/entry.h"
#include "mpiio/file/thread_level.h"

namespace shima {
namespace {

Status start(OpenFile& file, MPI_File fh, const Access& access, const Buffer& buffer,
             MPI_Request* request) {
  const bool together = access.scope == Access::Scope::together;
  if (together) SHIMA_TRY(file.check_no_split());
  PreparedAccess prepared = prepare(file, access, buffer);
  Worker* const worker = !together                     ? &file.alone()
                         : may_run_in_background(file) ? &file.together()
                                                       : nullptr;
  const Work work = prepared.work;
  const Status status =
      prepared.status
          ? caught([&] { return start_request(fh, worker, std::move(prepared), request); })
          : prepared.status;
  if (status || !together) return status;
  // The others must hear of the error, in the order of the calls.
  if (worker != nullptr) {
    worker->add(work, [](const Outcome64&) {});
  } else {
    std::ignore = caught([&] { return work(); });
  }
  return status;
}

int start(MPI_File fh, const Access& access, const Buffer& buffer, MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  return on_file(fh, [&](OpenFile& file) { return start(file, fh, access, buffer, request); });
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
