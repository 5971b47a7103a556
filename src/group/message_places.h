// Where messages of several members lie when they arrive one after the other.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "base/result.h"

namespace shima {

// MPI's collective calls count and place bytes by int.
inline constexpr std::uint64_t most_message_bytes = std::numeric_limits<int>::max();

// The sum of the lengths; an error, on all members alike, where MPI cannot place the messages.
[[nodiscard]] inline Result<std::uint64_t> length_of_messages(std::span<const std::uint64_t> lens) {
  std::uint64_t sum = 0;
  for (const std::uint64_t len : lens) {
    if (len > most_message_bytes - sum)
      return fail(Code::unsupported_operation,
                  "a collective call over several nodes: the descriptions of all ranks' accesses "
                  "come to more than 2147483647 bytes; use datatypes with fewer pieces, or move "
                  "the data in several calls");
    sum += len;
  }
  return sum;
}

}  // namespace shima
