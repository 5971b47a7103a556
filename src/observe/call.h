// The calls that a board and a trace name: one number for each.
//
// The numbers of data accesses through MPI-IO are made of the properties of the call, so no table
// lists them.
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
  named_count,
};

enum class Pointer : std::uint8_t { explicit_offset, individual, shared };
enum class Mode : std::uint8_t { blocking, nonblocking, split };

inline constexpr CallCode mpi_data = 0x100;   // + the bits of the call
inline constexpr CallCode file_data = 0x200;  // of pff.h, or inside Shima

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

[[nodiscard]] constexpr bool is_data(CallCode code) { return code >= mpi_data; }
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
         code == lapi_address_init || code == dsm_barrier;
}

}  // namespace call

// The place of a call in the program: the address behind it.
struct CallPlace {
  CallCode code = call::none;
  const void* site = nullptr;
};

// "MPI_File_write_at_all"; "call 77" for an unknown number.
[[nodiscard]] std::string call_name(CallCode code);

}  // namespace shima
