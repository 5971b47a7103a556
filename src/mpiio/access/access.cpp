#include "mpiio/access/access.h"

#include <fmt/format.h>

#include "device/memory.h"
#include "mpiio/datarep/conversion.h"
#include "mpiio/datatype/datatypes.h"
#include "mpiio/file/access_mode.h"

namespace shima {
namespace {

Status check_access(const AccessMode& mode, const Access& access, MPI_Count count) {
  SHIMA_TRY(access.direction == Direction::write ? check_writable(mode) : check_readable(mode));
  if (access.pointer != Access::Pointer::shared) SHIMA_TRY(check_not_sequential(mode));
  if (count < 0) return fail(Code::bad_count, fmt::format("count {} is negative", count));
  return {};
}

// The buffer as the memory side of a transfer, and the objects that keep it valid.
struct Memory {
  Slice slice;
  std::optional<DevicePlace> device;
  std::shared_ptr<Conversion> conversion;  // null: bytes are not converted
};

Result<Memory> find_memory(OpenFile& file, const Access& access, const Buffer& buffer) {
  SHIMA_TRY(check_access(file.file().mode(), access, buffer.count));
  SHIMA_TRY_ASSIGN(const auto map, type_map_of(buffer.type));
  if (!file.converts()) {
    SHIMA_TRY_ASSIGN(Slice slice, memory_slice(*map, buffer.address, buffer.count));
    const auto device = device_place_of(slice);
    return Memory{std::move(slice), device, nullptr};
  }
  SHIMA_TRY_ASSIGN(auto conversion,
                   Conversion::make(file.view()->representation(), buffer, access.direction));
  if (access.direction == Direction::write) SHIMA_TRY(conversion->encode());
  Slice slice = conversion->slice();
  return Memory{std::move(slice), {}, std::move(conversion)};
}

// A member that runs out of memory here must still take part in a collective call.
Result<Memory> memory_of(OpenFile& file, const Access& access, const Buffer& buffer) {
  return caught([&] { return find_memory(file, access, buffer); });
}

// Decodes the data read into the program's buffer; the result counts bytes of the buffer.
Outcome64 conclude(const Access& access, Conversion& conversion, const Outcome64& outcome) {
  if (!outcome) return outcome;
  if (access.direction == Direction::read) SHIMA_TRY(conversion.decode(*outcome));
  return conversion.memory_bytes_in(*outcome);
}

std::function<Outcome64(const Outcome64&)> conclusion_of(const Access& access,
                                                         const Result<Memory>& memory) {
  if (!memory || memory->conversion == nullptr) return nullptr;
  return [access, conversion = memory->conversion](const Outcome64& outcome) {
    return conclude(access, *conversion, outcome);
  };
}

Result<Slice> place_of(OpenFile& file, const Access& access, std::uint64_t len_bytes) {
  switch (access.pointer) {
    case Access::Pointer::explicit_offset:
      return file.at(access.offset, len_bytes);
    case Access::Pointer::individual:
      return file.take(len_bytes);
    case Access::Pointer::shared:
      return file.take_shared(len_bytes);
  }
  std::unreachable();
}

Result<Transfer> transfer_of(OpenFile& file, const Access& access, const Result<Memory>& memory) {
  if (!memory) return std::unexpected(memory.error());
  SHIMA_TRY_ASSIGN(Slice place,
                   caught([&] { return place_of(file, access, memory->slice.len_bytes); }));
  return Transfer{.file = std::move(place), .memory = memory->slice, .device = memory->device};
}

Outcome64 run(File& file, const Access& access, const Result<Transfer>& transfer) {
  const bool write = access.direction == Direction::write;
  if (access.scope == Access::Scope::together)
    return write ? file.write_all(transfer) : file.read_all(transfer);
  if (!transfer) return std::unexpected(transfer.error());
  return write ? file.write(*transfer) : file.read(*transfer);
}

// In rank order at the shared pointer: a member's place follows from the lengths that all bring.
PreparedAccess prepare_ordered(OpenFile& file, const Access& access, const Buffer& buffer) {
  Result<Memory> memory = memory_of(file, access, buffer);
  const auto pointer = file.shared_pointer();
  if (memory && !pointer) memory = std::unexpected(pointer.error());
  const Status status = memory ? Status{} : std::unexpected(memory.error());
  // The conversion stays with the program's thread; the worker, which calls no MPI, does the rest.
  auto side =
      memory ? Result<Transfer>({.file = {}, .memory = memory->slice, .device = memory->device})
             : std::unexpected(memory.error());
  auto work = [&file, access, side = std::move(side), view = file.view()]() -> Outcome64 {
    const auto len =
        side ? Result<std::uint64_t>(side->memory.len_bytes) : std::unexpected(side.error());
    SHIMA_TRY_ASSIGN(const std::int64_t begin, file.file().claim_in_order(len));
    const auto transfer = caught([&]() -> Result<Transfer> {
      SHIMA_TRY(status_of(side));
      SHIMA_TRY_ASSIGN(Slice place, view->slice(ViewOffset{begin}, *len));
      return Transfer{.file = std::move(place), .memory = side->memory, .device = side->device};
    });
    return run(file.file(), access, transfer);
  };
  return {status, std::move(work), conclusion_of(access, memory)};
}

}  // namespace

PreparedAccess prepare(OpenFile& file, const Access& access, const Buffer& buffer) {
  if (access.scope == Access::Scope::together && access.pointer == Access::Pointer::shared)
    return prepare_ordered(file, access, buffer);
  const Result<Memory> memory = memory_of(file, access, buffer);
  Result<Transfer> transfer = transfer_of(file, access, memory);
  const Status status = transfer ? Status{} : std::unexpected(transfer.error());
  auto work = [&file, access, transfer = std::move(transfer)] {
    return run(file.file(), access, transfer);
  };
  return {status, std::move(work), conclusion_of(access, memory)};
}

Outcome64 carry_out(OpenFile& file, const Access& access, const Buffer& buffer) {
  if (access.scope == Access::Scope::together && access.pointer == Access::Pointer::shared) {
    auto prepared =
        caught([&]() -> Result<PreparedAccess> { return prepare_ordered(file, access, buffer); });
    if (prepared) return prepared->concluded(prepared->work());
    file.take_part_with_error(prepared.error().code, true, false);
    return std::unexpected(prepared.error());
  }
  const Result<Memory> memory = memory_of(file, access, buffer);
  const auto transfer = caught([&] { return transfer_of(file, access, memory); });
  const Outcome64 outcome = run(file.file(), access, transfer);
  if (!memory || memory->conversion == nullptr) return outcome;
  return conclude(access, *memory->conversion, outcome);
}

void set_status(MPI_Status* status, std::uint64_t len_bytes) {
  if (status == MPI_STATUS_IGNORE) return;
  PMPI_Status_set_elements_x(status, MPI_BYTE, static_cast<MPI_Count>(len_bytes));
  PMPI_Status_set_cancelled(status, 0);
}

}  // namespace shima
