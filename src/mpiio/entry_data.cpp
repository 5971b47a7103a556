// Reading and writing: every call is one Access.
//
// An argument error of a collective call is not returned at once: the member takes part with the
// error instead of a transfer, so that the others neither hang nor succeed.
#include <fmt/format.h>

#include <optional>

#include "mpiio/access_mode.h"
#include "mpiio/datatypes.h"
#include "mpiio/entry.h"

namespace shima {
namespace {

struct Access {
  enum class Direction : std::uint8_t { read, write };

  enum class Scope : std::uint8_t { alone, together };

  Direction direction;
  Scope scope;
  std::optional<MPI_Offset> offset;  // in etypes; without one, the individual pointer
};

struct Buffer {
  const void* address;
  MPI_Count count;
  MPI_Datatype type;
};

Status check_access(const AccessMode& mode, const Access& access, MPI_Count count) {
  SHIMA_TRY(access.direction == Access::Direction::write ? check_writable(mode)
                                                         : check_readable(mode));
  SHIMA_TRY(check_not_sequential(mode));
  if (count < 0) return fail(Code::bad_count, fmt::format("count {} is negative", count));
  return {};
}

Result<Transfer> transfer_of(OpenFile& file, const Access& access, const Buffer& buffer) {
  SHIMA_TRY(check_access(file.file().mode(), access, buffer.count));
  SHIMA_TRY_ASSIGN(const auto map, type_map_of(buffer.type));
  SHIMA_TRY_ASSIGN(Slice memory, memory_slice(*map, buffer.address, buffer.count));
  SHIMA_TRY_ASSIGN(Slice place, access.offset ? file.at(*access.offset, memory.len_bytes)
                                              : file.take(memory.len_bytes));
  return Transfer{.file = std::move(place), .memory = std::move(memory)};
}

Result<std::uint64_t> run(File& file, const Access& access, const Result<Transfer>& transfer) {
  const bool write = access.direction == Access::Direction::write;
  if (access.scope == Access::Scope::together)
    return write ? file.write_all(transfer) : file.read_all(transfer);
  if (!transfer) return std::unexpected(transfer.error());
  return write ? file.write(*transfer) : file.read(*transfer);
}

void set_status(MPI_Status* status, std::uint64_t len_bytes) {
  if (status == MPI_STATUS_IGNORE) return;
  PMPI_Status_set_elements_x(status, MPI_BYTE, static_cast<MPI_Count>(len_bytes));
  PMPI_Status_set_cancelled(status, 0);
}

int transfer(MPI_File fh, const Access& access, const Buffer& buffer, MPI_Status* status) {
  return on_file(fh, [&](OpenFile& file) -> Status {
    SHIMA_TRY_ASSIGN(const std::uint64_t moved,
                     run(file.file(), access, transfer_of(file, access, buffer)));
    set_status(status, moved);
    return {};
  });
}

constexpr auto reading = Access::Direction::read;
constexpr auto writing = Access::Direction::write;
constexpr auto alone = Access::Scope::alone;
constexpr auto together = Access::Scope::together;

}  // namespace
}  // namespace shima

using namespace shima;

// The eight calls, with counts of either width. `pointer` is how the buffer is declared.
#define SHIMA_ACCESS(name, direction, scope, pointer, count_type)                        \
  int MPI_File_##name(MPI_File fh, pointer buf, count_type count, MPI_Datatype datatype, \
                      MPI_Status* status) {                                              \
    return transfer(fh, {direction, scope, {}}, {buf, count, datatype}, status);         \
  }                                                                                      \
  SHIMA_EXPORT(File_##name)
#define SHIMA_ACCESS_AT(name, direction, scope, pointer, count_type)                 \
  int MPI_File_##name(MPI_File fh, MPI_Offset offset, pointer buf, count_type count, \
                      MPI_Datatype datatype, MPI_Status* status) {                   \
    return transfer(fh, {direction, scope, offset}, {buf, count, datatype}, status); \
  }                                                                                  \
  SHIMA_EXPORT(File_##name)

SHIMA_ACCESS(read, reading, alone, void*, int);
SHIMA_ACCESS(read_all, reading, together, void*, int);
SHIMA_ACCESS(write, writing, alone, const void*, int);
SHIMA_ACCESS(write_all, writing, together, const void*, int);
SHIMA_ACCESS_AT(read_at, reading, alone, void*, int);
SHIMA_ACCESS_AT(read_at_all, reading, together, void*, int);
SHIMA_ACCESS_AT(write_at, writing, alone, const void*, int);
SHIMA_ACCESS_AT(write_at_all, writing, together, const void*, int);

#if SHIMA_LARGE_COUNTS
SHIMA_ACCESS(read_c, reading, alone, void*, MPI_Count);
SHIMA_ACCESS(read_all_c, reading, together, void*, MPI_Count);
SHIMA_ACCESS(write_c, writing, alone, const void*, MPI_Count);
SHIMA_ACCESS(write_all_c, writing, together, const void*, MPI_Count);
SHIMA_ACCESS_AT(read_at_c, reading, alone, void*, MPI_Count);
SHIMA_ACCESS_AT(read_at_all_c, reading, together, void*, MPI_Count);
SHIMA_ACCESS_AT(write_at_c, writing, alone, const void*, MPI_Count);
SHIMA_ACCESS_AT(write_at_all_c, writing, together, const void*, MPI_Count);
#endif
