// Offsets that must not be mixed.
//
// A view offset counts data bytes of a view, a file offset is a position in the logical file, a
// target offset is a position in one subfile. They are distinct types; only the layout turns a file
// offset into a target offset, and only a view turns a view offset into file offsets.
#pragma once

#include <compare>
#include <cstdint>

namespace shima {

template <class Tag>
struct Offset {
  std::int64_t value = 0;

  friend constexpr auto operator<=>(Offset, Offset) = default;
  friend constexpr Offset operator+(Offset a, std::int64_t bytes) { return {a.value + bytes}; }
  friend constexpr Offset operator-(Offset a, std::int64_t bytes) { return {a.value - bytes}; }
  friend constexpr std::int64_t operator-(Offset a, Offset b) { return a.value - b.value; }
};

using ViewOffset = Offset<struct ViewOffsetTag>;
using FileOffset = Offset<struct FileOffsetTag>;
using TargetOffset = Offset<struct TargetOffsetTag>;

template <class Where>
struct Range {
  Where begin{};
  Where end{};  // one past the last byte

  [[nodiscard]] constexpr bool empty() const { return end <= begin; }
  [[nodiscard]] constexpr std::uint64_t len_bytes() const {
    return empty() ? 0 : static_cast<std::uint64_t>(end - begin);
  }
  friend constexpr bool operator==(Range, Range) = default;
};

using FileRange = Range<FileOffset>;
using TargetRange = Range<TargetOffset>;

// Signed and unsigned byte counts meet where offsets and lengths are added; both fit 63 bits.
constexpr std::int64_t as_signed(std::uint64_t bytes) { return static_cast<std::int64_t>(bytes); }
constexpr std::uint64_t as_unsigned(std::int64_t bytes) {
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace shima
