// The offsets of several members' messages in one receive buffer.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "base/result.h"

namespace shima {

// MPI's collective calls use int for counts and displacements of bytes.
inline constexpr std::uint64_t most_message_bytes = std::numeric_limits<int>::max();

// The sum of the lengths; an error, the same on all members, if it exceeds the limit.
[[nodiscard]] inline Result<std::uint64_t> length_of_messages(std::span<const std::uint64_t> lens) {
  std::uint64_t sum = 0;
  for (const std::uint64_t len : lens) {
    if (len > most_message_bytes - sum)
      return fail(Code::unsupported_operation,
                  "a collective call over several nodes: the descriptions of all ranks' accesses "
                  "exceed 2147483647 bytes; use datatypes with fewer pieces, or move "
                  "the data in several calls");
    sum += len;
  }
  return sum;
}

}  // namespace shima
