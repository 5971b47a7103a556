// What members bring to the meeting that starts a collective transfer (Channel::combine).
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace shima {

// A value of the same length on all members, which is joined, and a message for the near ones.
struct Contribution {
  using Value = std::array<std::byte, 128>;  // holds the longest value
  std::span<const std::byte> value;
  std::span<const std::byte> message;
};

// Joins `one` into `all`; associative and commutative.
using JoinValues = void (*)(std::span<std::byte> all, std::span<const std::byte> one);

}  // namespace shima
