// Split collective calls: begin starts, end waits.
//
// A file has at most one under way (MPI-4.1, section 14.4.5), and it runs in the file's thread.
#include <fmt/format.h>

#include "base/fault_point.h"
#include "mpiio/access/access.h"
#include "mpiio/comm/progress.h"
#include "mpiio/entry/access_table.h"
#include "mpiio/entry/entry.h"
#include "mpiio/file/thread_level.h"

namespace shima {
namespace {

// On success, a split call is under way in the file, and `task` is its work.
Status prepare_split(OpenFile& file, const char* kind, const Access& access, const Buffer& buffer,
                     Task& task) {
  const auto pending = std::make_shared<Pending>();
  PreparedAccess prepared = prepare(file, access, buffer);
  Task made(std::move(prepared.work), pending, prepared.begin);
  file.begin_split({kind, [pending, conclude = std::move(prepared.conclude)] {
                      pending->run_late();
                      return PreparedAccess{{}, {}, conclude}.concluded(
                          pending->wait(progress_mpi));
                    }});
  task = std::move(made);
  return {};
}

int begin(MPI_File fh, const char* kind, const Access& access, const Buffer& buffer) {
  return on_file(fh, [&](OpenFile& file) -> Status {
    SHIMA_TRY(file.settle());
    const bool in_background = may_run_in_background(file);
    Task task;
    const Status status = caught([&] { return prepare_split(file, kind, access, buffer, task); });
    if (!status) {
      file.take_part_with_error(status.error().code, access.pointer == Access::Pointer::shared,
                                in_background);
    } else if (in_background) {
      file.together().add(std::move(task));
    } else {
      task.run();
    }
    fault_point(FaultPhase::split);
    return status;
  });
}

int end(MPI_File fh, const char* kind, MPI_Status* status) {
  return on_file(fh, [&](OpenFile& file) -> Status {
    SHIMA_TRY_ASSIGN(const Work finish, file.end_split(kind));
    SHIMA_TRY_ASSIGN(const std::uint64_t moved, finish());
    set_status(status, moved);
    return {};
  });
}

}  // namespace
}  // namespace shima

using namespace shima;

#define SHIMA_BEGIN(name, suffix, direction, pointer, memory, count_type)                  \
  int MPI_File_##name##_begin##suffix(MPI_File fh, memory buf, count_type count,           \
                                      MPI_Datatype datatype) {                             \
    return begin(                                                                          \
        fh, #name,                                                                         \
        {direction, together, pointer, 0, __builtin_return_address(0), call::Mode::split}, \
        {buf, count, datatype});                                                           \
  }                                                                                        \
  SHIMA_EXPORT(File_##name##_begin##suffix)
#define SHIMA_BEGIN_AT(name, suffix, direction, memory, count_type)                          \
  int MPI_File_##name##_begin##suffix(MPI_File fh, MPI_Offset offset, memory buf,            \
                                      count_type count, MPI_Datatype datatype) {             \
    return begin(fh, #name,                                                                  \
                 {direction, together, explicit_offset, offset, __builtin_return_address(0), \
                  call::Mode::split},                                                        \
                 {buf, count, datatype});                                                    \
  }                                                                                          \
  SHIMA_EXPORT(File_##name##_begin##suffix)
#define SHIMA_END(name, memory)                                        \
  int MPI_File_##name##_end(MPI_File fh, memory, MPI_Status* status) { \
    return end(fh, #name, status);                                     \
  }                                                                    \
  SHIMA_EXPORT(File_##name##_end)

#define SHIMA_BEGINS(suffix, count_type)                                        \
  SHIMA_BEGIN(read_all, suffix, reading, individual, void*, count_type);        \
  SHIMA_BEGIN(read_ordered, suffix, reading, shared, void*, count_type);        \
  SHIMA_BEGIN(write_all, suffix, writing, individual, const void*, count_type); \
  SHIMA_BEGIN(write_ordered, suffix, writing, shared, const void*, count_type); \
  SHIMA_BEGIN_AT(read_at_all, suffix, reading, void*, count_type);              \
  SHIMA_BEGIN_AT(write_at_all, suffix, writing, const void*, count_type)

SHIMA_BEGINS(, int);
#if SHIMA_LARGE_COUNTS
SHIMA_BEGINS(_c, MPI_Count);
#endif

SHIMA_END(read_all, void*);
SHIMA_END(read_at_all, void*);
SHIMA_END(read_ordered, void*);
SHIMA_END(write_all, const void*);
SHIMA_END(write_at_all, const void*);
SHIMA_END(write_ordered, const void*);
