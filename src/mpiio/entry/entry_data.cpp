// Blocking data access.
#include "mpiio/access/access.h"
#include "mpiio/entry/entry.h"

namespace shima {
namespace {

int transfer(MPI_File fh, const Access& access, const Buffer& buffer, MPI_Status* status) {
  return on_file(fh, [&](OpenFile& file) -> Status {
    if (access.scope == Access::Scope::together) SHIMA_TRY(file.settle());
    SHIMA_TRY_ASSIGN(const std::uint64_t moved, carry_out(file, access, buffer));
    set_status(status, moved);
    return {};
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

// `memory` is the declaration of the buffer.
#define SHIMA_ACCESS(name, direction, scope, pointer, memory, count_type)               \
  int MPI_File_##name(MPI_File fh, memory buf, count_type count, MPI_Datatype datatype, \
                      MPI_Status* status) {                                             \
    return transfer(fh, {direction, scope, pointer}, {buf, count, datatype}, status);   \
  }                                                                                     \
  SHIMA_EXPORT(File_##name)
#define SHIMA_ACCESS_AT(name, direction, scope, memory, count_type)                          \
  int MPI_File_##name(MPI_File fh, MPI_Offset offset, memory buf, count_type count,          \
                      MPI_Datatype datatype, MPI_Status* status) {                           \
    return transfer(fh, {direction, scope, explicit_offset, offset}, {buf, count, datatype}, \
                    status);                                                                 \
  }                                                                                          \
  SHIMA_EXPORT(File_##name)

// All calls, for one type of counts.
#define SHIMA_ACCESSES(suffix, count_type)                                                 \
  SHIMA_ACCESS(read##suffix, reading, alone, individual, void*, count_type);               \
  SHIMA_ACCESS(read_all##suffix, reading, together, individual, void*, count_type);        \
  SHIMA_ACCESS(read_shared##suffix, reading, alone, shared, void*, count_type);            \
  SHIMA_ACCESS(read_ordered##suffix, reading, together, shared, void*, count_type);        \
  SHIMA_ACCESS(write##suffix, writing, alone, individual, const void*, count_type);        \
  SHIMA_ACCESS(write_all##suffix, writing, together, individual, const void*, count_type); \
  SHIMA_ACCESS(write_shared##suffix, writing, alone, shared, const void*, count_type);     \
  SHIMA_ACCESS(write_ordered##suffix, writing, together, shared, const void*, count_type); \
  SHIMA_ACCESS_AT(read_at##suffix, reading, alone, void*, count_type);                     \
  SHIMA_ACCESS_AT(read_at_all##suffix, reading, together, void*, count_type);              \
  SHIMA_ACCESS_AT(write_at##suffix, writing, alone, const void*, count_type);              \
  SHIMA_ACCESS_AT(write_at_all##suffix, writing, together, const void*, count_type)

SHIMA_ACCESSES(, int);
#if SHIMA_LARGE_COUNTS
SHIMA_ACCESSES(_c, MPI_Count);
#endif
