// The calls that a board and a trace name: one number for each.
//
// The numbers of calls that move data are made of the properties of the call, so no table lists
// them.
#pragma once

#include <cstdint>
#include <string>

#include "base/direction.h"

namespace shima {

using CallCode = std::uint16_t;

namespace call {

enum Named : CallCode {
  none,
  file_open,
  file_close,
  file_sync,
  file_set_view,
  file_set_size,
  file_preallocate,
  file_set_atomicity,
  lapi_fence,
  lapi_global_fence,
  lapi_wait_counter,
  lapi_address_init,
  lapi_transfer,
  dsm_access,
  dsm_fence,
  dsm_barrier,
  lapi_init,
  lapi_term,
  dsm_open,
  dsm_close,
  named_count,
};

enum class Pointer : std::uint8_t { explicit_offset, individual, shared };
enum class Mode : std::uint8_t { blocking, nonblocking, split };
// On another task's memory.
enum class Lapi : std::uint8_t { put, putv, amsend, amsendv, get, getv, rmw, rmw64 };
enum class Dsm : std::uint8_t { write, write_b, read, fetch_add, fetch_or, swap, compare_and_swap };

inline constexpr CallCode mpi_data = 0x100;   // + the bits of the call
inline constexpr CallCode file_data = 0x200;  // of pff.h, or inside Shima
inline constexpr CallCode lapi_data = 0x400;
inline constexpr CallCode dsm_data = 0x800;

[[nodiscard]] constexpr CallCode mpi_access(Direction direction, bool together, Pointer pointer,
                                            Mode mode) {
  return static_cast<CallCode>(mpi_data | (direction == Direction::write ? 1U : 0U) |
                               (together ? 2U : 0U) | static_cast<unsigned>(pointer) << 2U |
                               static_cast<unsigned>(mode) << 4U);
}
[[nodiscard]] constexpr CallCode file_access(Direction direction, bool together) {
  return static_cast<CallCode>(file_data | (direction == Direction::write ? 1U : 0U) |
                               (together ? 2U : 0U));
}

// `by_xfer`: through LAPI_Xfer.
[[nodiscard]] constexpr CallCode lapi_access(Lapi kind, bool by_xfer = false) {
  return static_cast<CallCode>(lapi_data | static_cast<unsigned>(kind) | (by_xfer ? 0x10U : 0U));
}
// `is_wide`: of an atomic operation, on 64 bits.
[[nodiscard]] constexpr CallCode dsm_access_of(Dsm kind, bool is_wide = false) {
  return static_cast<CallCode>(dsm_data | static_cast<unsigned>(kind) | (is_wide ? 0x10U : 0U));
}

// Whether it moves bytes of a file.
[[nodiscard]] constexpr bool is_data(CallCode code) { return (code & (mpi_data | file_data)) != 0; }
[[nodiscard]] constexpr bool is_write(CallCode code) { return is_data(code) && (code & 1U) != 0; }
[[nodiscard]] constexpr bool is_together(CallCode code) {
  return is_data(code) && (code & 2U) != 0;
}
[[nodiscard]] constexpr bool is_nonblocking(CallCode code) {
  return (code & mpi_data) != 0 && ((code >> 4U) & 3U) == static_cast<unsigned>(Mode::nonblocking);
}
// Whether the members of a file, or all tasks of a job, meet in the call.
[[nodiscard]] constexpr bool is_meeting(CallCode code) {
  if (is_data(code)) return is_together(code);
  return (code >= file_open && code <= file_set_atomicity) || code == lapi_global_fence ||
         code == lapi_address_init || code == dsm_barrier || code == dsm_open || code == dsm_close;
}

// Whether it accesses another task's memory.
[[nodiscard]] constexpr bool is_memory(CallCode code) {
  return (code & (lapi_data | dsm_data)) != 0;
}
[[nodiscard]] constexpr unsigned memory_kind(CallCode code) { return code & 0xfU; }
// Whether it sends bytes to another task, or fetches some from it; atomic operations do neither.
[[nodiscard]] constexpr bool sends(CallCode code) {
  if ((code & lapi_data) != 0) return memory_kind(code) <= static_cast<unsigned>(Lapi::amsendv);
  return (code & dsm_data) != 0 && memory_kind(code) <= static_cast<unsigned>(Dsm::write_b);
}
[[nodiscard]] constexpr bool fetches(CallCode code) {
  if ((code & lapi_data) != 0)
    return !sends(code) && memory_kind(code) <= static_cast<unsigned>(Lapi::getv);
  return (code & dsm_data) != 0 && memory_kind(code) == static_cast<unsigned>(Dsm::read);
}
// Whether it does nothing but wait for other tasks.
[[nodiscard]] constexpr bool is_wait(CallCode code) {
  return (code >= lapi_fence && code <= lapi_address_init) || code == dsm_fence ||
         code == dsm_barrier;
}
// Whether it is one of LAPI's or of a distributed shared memory's.
[[nodiscard]] constexpr bool is_of_lapi(CallCode code) {
  return (code >= lapi_fence && code <= lapi_transfer) || code == lapi_init || code == lapi_term ||
         (code & lapi_data) != 0;
}
[[nodiscard]] constexpr bool is_of_dsm(CallCode code) {
  return (code >= dsm_access && code <= dsm_barrier) || code == dsm_open || code == dsm_close ||
         (code & dsm_data) != 0;
}

}  // namespace call

// The place of a call in the program: the address behind it.
struct CallPlace {
  CallCode code = call::none;
  const void* site = nullptr;
};

// Whether a call is traced: as the process is when the call moves data, or as it was when the
// program began the call, if that may have been earlier.
enum class Tracing : std::uint8_t { as_now, yes, no };

// "MPI_File_write_at_all"; "call 77" for an unknown number.
[[nodiscard]] std::string call_name(CallCode code);

}  // namespace shima
