// Records which bytes of a window the members requested.
//
// One bit per granule, where a granule is the largest power of two that divides every piece and
// every distance between pieces: a window of 64-byte pieces needs one bit for each, a window of
// doubles one for eight bytes. Members
// mark their pieces in any order; the runs are visited in file order. This replaces a k-way merge,
// whose cost per piece would exceed that of copying it. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "pattern/cursor.h"

namespace shima {

class Coverage {
 public:
  // Clears all marks; `granule_bytes`, or the largest power of two in it, divides all offsets in
  // the window and its ends.
  void reset(TargetRange window, std::uint64_t granule_bytes);
  // Marks the bytes of a strip, which must be inside the window.
  void mark(const Strip& strip);
  // Marks what `other`, of the same window and granule, has marked.
  void add(const Coverage& other);
  // The number of marked bytes.
  [[nodiscard]] std::uint64_t len_bytes() const;
  [[nodiscard]] TargetRange window() const { return window_; }
  [[nodiscard]] std::uint64_t granule_bytes() const { return std::uint64_t{1} << shift_; }
  // One bit for each granule, from the lowest bit of the first word on.
  [[nodiscard]] std::span<const std::uint64_t> words() const { return words_; }
  // Sets the first words; false if a bit beyond the window is set.
  [[nodiscard]] bool set_words(std::span<const std::byte> words);

  // Calls visit(TargetRange) for each maximal run of marked bytes; runs closer than
  // `join_gap_bytes` are joined. Stops at the first error.
  template <class Visit>
  [[nodiscard]] Status for_each_run(std::uint64_t join_gap_bytes, Visit visit) const {
    std::uint64_t bit = next_bit(0, true);
    while (bit < bits_) {
      std::uint64_t end = next_bit(bit, false);
      std::uint64_t next = next_bit(end, true);
      while (next < bits_ && (next - end) << shift_ < join_gap_bytes) {
        end = next_bit(next, false);
        next = next_bit(end, true);
      }
      SHIMA_TRY(visit(TargetRange{at(bit), at(end)}));
      bit = next;
    }
    return {};
  }

 private:
  static constexpr std::uint64_t word_bits = 64;

  // `count` one bits from bit `first` of a word; first + count <= 64, count > 0.
  [[nodiscard]] static std::uint64_t ones(std::uint64_t first, std::uint64_t count) {
    return (~std::uint64_t{0} >> (word_bits - count)) << first;
  }
  void mark_bits(std::uint64_t first, std::uint64_t count);
  // The first bit at or after `from` that has `value`; bits_ if none.
  [[nodiscard]] std::uint64_t next_bit(std::uint64_t from, bool value) const;
  [[nodiscard]] TargetOffset at(std::uint64_t bit) const {
    return window_.begin + as_signed(bit << shift_);
  }

  TargetRange window_;
  unsigned shift_ = 0;  // bytes to granules
  std::uint64_t bits_ = 0;
  std::vector<std::uint64_t> words_;
};

// Inline: once for each piece.
inline void Coverage::mark(const Strip& strip) {
  std::uint64_t bit = as_unsigned(strip.offset - window_.begin.value) >> shift_;
  const std::uint64_t step = as_unsigned(strip.stride_bytes) >> shift_;
  const std::uint64_t bits = strip.len_bytes >> shift_;
  for (std::uint64_t i = 0; i < strip.count; ++i, bit += step) mark_bits(bit, bits);
}

inline void Coverage::mark_bits(std::uint64_t first, std::uint64_t count) {
  while (count > 0) {
    const std::uint64_t shift = first % word_bits;
    const std::uint64_t here = std::min(count, word_bits - shift);
    words_[first / word_bits] |= ones(shift, here);
    first += here;
    count -= here;
  }
}

}  // namespace shima
