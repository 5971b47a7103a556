// Joins one value of each member into one that all get (Channel::combine), with no memory for every
// member.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include "group/channel.h"

namespace shima {

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

// The value that the first bytes hold.
template <class T>
T value_in(std::span<const std::byte> bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// `join` as Channel::combine calls it: `join(a, b)` is associative and commutative.
template <auto join, class T>
void join_bytes(std::span<std::byte> all, std::span<const std::byte> one) {
  static_assert(sizeof(T) <= sizeof(Contribution::Value));
  const T joined = join(value_in<T>(all), value_in<T>(one));
  std::memcpy(all.data(), &joined, sizeof joined);
}

// The joined value of all members. Collective; an error of one is returned by all.
template <auto join, class T>
Result<T> combine_values(Channel& channel, const Result<T>& mine) {
  const auto brought = mine ? Result<Contribution>({.value = bytes_of(*mine), .message = {}})
                            : std::unexpected(mine.error());
  SHIMA_TRY_ASSIGN(const auto all, channel.combine(brought, join_bytes<join, T>));
  return value_in<T>(all);
}

// The sums of a structure's 64-bit fields over all members. Collective; an error of one is returned
// by all.
template <class T>
Result<T> sum_values(Channel& channel, const Result<T>& mine) {
  using Numbers = std::array<std::uint64_t, sizeof(T) / sizeof(std::uint64_t)>;
  using Piece = std::array<std::uint64_t, sizeof(Contribution::Value) / sizeof(std::uint64_t)>;
  static_assert(sizeof(Numbers) == sizeof(T));
  constexpr auto add = [](Piece a, const Piece& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  };
  Numbers numbers = mine ? std::bit_cast<Numbers>(*mine) : Numbers{};
  for (std::size_t begin = 0; begin < numbers.size(); begin += Piece().size()) {
    const std::size_t count = std::min(Piece().size(), numbers.size() - begin);
    Piece piece{};
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(begin), count, piece.begin());
    const auto brought = mine ? Result<Piece>(piece) : std::unexpected(mine.error());
    SHIMA_TRY_ASSIGN(piece, combine_values<add>(channel, brought));
    std::copy_n(piece.begin(), count, numbers.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  return std::bit_cast<T>(numbers);
}

// The lowest and the highest of the members' values, to learn whether all are equal.
struct Extremes {
  std::uint64_t lowest = 0;
  std::uint64_t highest = 0;

  [[nodiscard]] constexpr bool equal() const { return lowest == highest; }
};

[[nodiscard]] constexpr Extremes join(const Extremes& a, const Extremes& b) {
  return {std::min(a.lowest, b.lowest), std::max(a.highest, b.highest)};
}

// For Channel::sum_in_order: a sum too large stays the largest number.
[[nodiscard]] constexpr std::uint64_t add_up(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  return a > most - b ? most : a + b;
}

}  // namespace shima
