#include "mpiio/access/access.h"

#include <fmt/format.h>

#include "device/memory.h"
#include "mpiio/datarep/conversion.h"
#include "mpiio/datatype/datatypes.h"
#include "mpiio/file/access_mode.h"
#include "observe/trace_log.h"

namespace shima {
namespace {

Status check_access(const AccessMode& mode, const Access& access, MPI_Count count) {
  SHIMA_TRY(access.direction == Direction::write ? check_writable(mode) : check_readable(mode));
  if (access.pointer != Access::Pointer::shared) SHIMA_TRY(check_not_sequential(mode));
  if (count < 0) return fail(Code::bad_count, fmt::format("count {} is negative", count));
  return {};
}

// One access, as the engine takes it. Memory and place are filled in where they are found: every
// copy of a description costs as much as a lookup.
struct Arranged {
  Result<Transfer> transfer;
  std::shared_ptr<Conversion> conversion;  // null: bytes are not converted
};

Status find_memory(OpenFile& file, const Access& access, const Buffer& buffer, Arranged& made) {
  SHIMA_TRY(check_access(file.mode(), access, buffer.count));
  Transfer& transfer = *made.transfer;
  transfer.call = access.call();
  transfer.tracing = is_traced() ? Tracing::yes : Tracing::no;
  const auto map = type_map_of(buffer.type);
  if (!map) return std::unexpected(map.error());
  if (!file.converts()) {
    auto slice = memory_slice(**map, buffer.address, buffer.count);
    if (!slice) return std::unexpected(slice.error());
    transfer.device = device_place_of(*slice);
    transfer.memory = *std::move(slice);
    return {};
  }
  SHIMA_TRY_ASSIGN(made.conversion,
                   Conversion::make(file.view()->representation(), buffer, access.direction));
  if (access.direction == Direction::write) SHIMA_TRY(made.conversion->encode());
  transfer.memory = made.conversion->slice();
  return {};
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

Status find_place(OpenFile& file, const Access& access, Arranged& made) {
  Transfer& transfer = *made.transfer;
  auto place = place_of(file, access, transfer.memory.len_bytes);
  if (!place) return std::unexpected(std::move(place).error());
  transfer.file = *std::move(place);
  return {};
}

bool is_ordered(const Access& access) {
  return access.scope == Access::Scope::together && access.pointer == Access::Pointer::shared;
}

// The place of an ordered access is found later. A member that runs out of memory here must still
// take part in a collective call.
Arranged arrange(OpenFile& file, const Access& access, const Buffer& buffer) {
  Arranged made;
  const Status found = caught([&]() -> Status {
    SHIMA_TRY(find_memory(file, access, buffer, made));
    return is_ordered(access) ? Status{} : find_place(file, access, made);
  });
  if (!found) made.transfer = std::unexpected(found.error());
  return made;
}

// Decodes the data read into the program's buffer; the result counts bytes of the buffer.
Outcome64 conclude(const Access& access, Conversion& conversion, const Outcome64& outcome) {
  if (!outcome) return outcome;
  if (access.direction == Direction::read) SHIMA_TRY(conversion.decode(*outcome));
  return conversion.memory_bytes_in(*outcome);
}

std::function<Outcome64(const Outcome64&)> conclusion_of(const Access& access,
                                                         const Arranged& arranged) {
  if (arranged.conversion == nullptr) return nullptr;
  return [access, conversion = arranged.conversion](const Outcome64& outcome) {
    return conclude(access, *conversion, outcome);
  };
}

// Part of its callers: see file/own_access.cpp.
[[gnu::always_inline]] inline Outcome64 run(File& file, const Access& access,
                                            const Result<Transfer>& transfer) {
  const bool write = access.direction == Direction::write;
  if (access.scope == Access::Scope::together)
    return write ? file.write_all(transfer) : file.read_all(transfer);
  if (!transfer) return std::unexpected(transfer.error());
  return write ? file.write(*transfer) : file.read(*transfer);
}

// Most small accesses are contiguous in memory and in the file; describing such a one takes longer
// than a tenth of reading 8 bytes. Returns nothing, without effect, if the access is not of that
// kind or is an error. Inlined into its callers: see file/own_access.cpp.
[[gnu::always_inline]] inline std::optional<Outcome64> move_contiguous(OpenFile& file,
                                                                       const Access& access,
                                                                       const Buffer& buffer) {
  if (access.scope != Access::Scope::alone || access.pointer == Access::Pointer::shared ||
      buffer.count <= 0 || !file.is_dense() || file.converts() || may_be_device_memory() ||
      !file.file().moves_contiguous() || !check_access(file.mode(), access, buffer.count))
    return std::nullopt;
  const TypeMap* const map = recent_type_map(buffer.type);
  std::uint64_t len_bytes = 0;
  if (map == nullptr || !map->is_dense() ||
      __builtin_mul_overflow(as_unsigned(buffer.count), map->size(), &len_bytes) ||
      len_bytes > map->tiled.len_bytes())
    return std::nullopt;
  const auto begin = access.pointer == Access::Pointer::individual
                         ? file.take_contiguous(len_bytes)
                         : file.contiguous_at(access.offset, len_bytes);
  if (!begin) return std::nullopt;
  auto* const memory = static_cast<std::byte*>(const_cast<void*>(buffer.address));
  return file.file().move_contiguous({access.direction, *begin, {memory, len_bytes}},
                                     access.call());
}

// Who waits for an access makes no progress for the MPI while it runs the access itself, unless
// that meets other members.
Begin begin_of(OpenFile& file, const Access& access, const Result<Transfer>& transfer) {
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 20U;
  const bool is_short =
      !transfer ||
      (transfer->memory.len_bytes <= most_bytes &&
       (access.scope == Access::Scope::together || transfer->file.pattern.is_contiguous()));
  return is_short && !file.file().atomicity() ? Begin::late : Begin::at_once;
}

// In rank order at the shared pointer: a member's place follows from the lengths that all bring.
PreparedAccess prepare_ordered(OpenFile& file, const Access& access, const Buffer& buffer) {
  Arranged arranged = arrange(file, access, buffer);
  Result<Transfer>& side = arranged.transfer;
  const auto pointer = file.shared_pointer();
  if (side && !pointer) side = std::unexpected(pointer.error());
  const Status status = status_of(side);
  const Begin start = begin_of(file, access, side);
  auto conclusion = conclusion_of(access, arranged);
  // The conversion stays with the program's thread; the worker, which calls no MPI, does the rest.
  auto work = [&file, access, side = std::move(side), view = file.view()]() -> Outcome64 {
    const auto len =
        side ? Result<std::uint64_t>(side->memory.len_bytes) : std::unexpected(side.error());
    SHIMA_TRY_ASSIGN(const std::int64_t begin, file.file().claim_in_order(len));
    const auto transfer = caught([&]() -> Result<Transfer> {
      SHIMA_TRY(status_of(side));
      SHIMA_TRY_ASSIGN(Slice place, view->slice(ViewOffset{begin}, *len));
      return Transfer{.file = std::move(place),
                      .memory = side->memory,
                      .device = side->device,
                      .call = side->call,
                      .tracing = side->tracing};
    });
    return run(file.file(), access, transfer);
  };
  return {status, std::move(work), std::move(conclusion), false, start};
}

}  // namespace

PreparedAccess prepare(OpenFile& file, const Access& access, const Buffer& buffer) {
  if (is_ordered(access)) return prepare_ordered(file, access, buffer);
  Arranged arranged = arrange(file, access, buffer);
  const Status status = status_of(arranged.transfer);
  auto conclusion = conclusion_of(access, arranged);
  const bool by_caller = status && access.scope == Access::Scope::alone &&
                         file.file().moves_at_once(access.direction, *arranged.transfer);
  const Begin begin = begin_of(file, access, arranged.transfer);
  auto work = [&file, access, transfer = std::move(arranged.transfer)] {
    return run(file.file(), access, transfer);
  };
  return {status, std::move(work), std::move(conclusion), by_caller, begin};
}

Outcome64 carry_out(OpenFile& file, const Access& access, const Buffer& buffer) {
  if (is_ordered(access)) {
    auto prepared =
        caught([&]() -> Result<PreparedAccess> { return prepare_ordered(file, access, buffer); });
    if (prepared) return prepared->concluded(prepared->work());
    file.take_part_with_error(prepared.error().code, true, false);
    return std::unexpected(prepared.error());
  }
  if (auto moved = move_contiguous(file, access, buffer)) return *std::move(moved);
  const Arranged arranged = arrange(file, access, buffer);
  Outcome64 outcome = run(file.file(), access, arranged.transfer);
  if (arranged.conversion == nullptr) return outcome;
  return conclude(access, *arranged.conversion, outcome);
}

void set_status(MPI_Status* status, std::uint64_t len_bytes) {
  if (status == MPI_STATUS_IGNORE) return;
  PMPI_Status_set_elements_x(status, MPI_BYTE, static_cast<MPI_Count>(len_bytes));
  PMPI_Status_set_cancelled(status, 0);
}

}  // namespace shima
