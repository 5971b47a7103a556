// Records which bytes of a window the members requested.
//
// One bit per granule, where a granule divides every piece and every distance between pieces: a
// window of 64-byte pieces needs one bit for each, a window of doubles one for eight bytes. Members
// mark their pieces in any order; the runs are visited in file order. This replaces a k-way merge,
// whose cost per piece would exceed that of copying it. Pure.
#pragma once

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
  // Clears all marks; `granule_bytes` divides all offsets in the window and its ends.
  void reset(TargetRange window, std::uint64_t granule_bytes);
  // Marks the bytes of a strip, which must be inside the window.
  void mark(const Strip& strip);
  // Marks what `other`, of the same window and granule, has marked.
  void add(const Coverage& other);
  // The number of marked bytes.
  [[nodiscard]] std::uint64_t len_bytes() const;
  [[nodiscard]] TargetRange window() const { return window_; }
  [[nodiscard]] std::uint64_t granule_bytes() const { return granule_bytes_; }
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
      while (next < bits_ && (next - end) * granule_bytes_ < join_gap_bytes) {
        end = next_bit(next, false);
        next = next_bit(end, true);
      }
      SHIMA_TRY(visit(TargetRange{at(bit), at(end)}));
      bit = next;
    }
    return {};
  }

 private:
  void mark_bits(std::uint64_t first, std::uint64_t count);
  // The first bit at or after `from` that has `value`; bits_ if none.
  [[nodiscard]] std::uint64_t next_bit(std::uint64_t from, bool value) const;
  [[nodiscard]] TargetOffset at(std::uint64_t bit) const {
    return window_.begin + as_signed(bit * granule_bytes_);
  }

  TargetRange window_;
  std::uint64_t granule_bytes_ = 1;
  std::uint64_t bits_ = 0;
  std::vector<std::uint64_t> words_;
};

}  // namespace shima
