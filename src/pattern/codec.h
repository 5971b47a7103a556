// Patterns and slices as bytes, for other processes.
//
// All numbers are 64-bit words in host order (ranks of one job share it).
//
//   slice    = pattern place
//   pattern  = node_count { node } root origin
//   place    = base first_byte len_bytes
//   node     = 0 len_bytes | 1 count stride child | 2 n { child origin } | 3 image
//
// Children come before parents, and each node is written once however often it is used. The image
// of a list is the one that it has in memory (pattern/piece_list.h): it is copied out, and on
// request used where it was received.
//
// A reader accepts only descriptions that the constructors could have made, so that a damaged one
// cannot cause unbounded recursion or sums that overflow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "pattern/pattern.h"

namespace shima {

// The code of a pattern, which must outlive it.
class PatternCode {
 public:
  explicit PatternCode(const Pattern& pattern);

  [[nodiscard]] std::size_t len_bytes() const { return len_bytes_; }
  // Writes the code to the beginning of `out`, and removes its place.
  void write(std::span<std::byte>& out) const;

 private:
  void add(const PatternNode* node);
  // Of a node that was added.
  [[nodiscard]] std::optional<std::uint64_t> place_of(const PatternNode* node) const;

  const Pattern& pattern_;
  std::size_t len_bytes_ = 0;
  std::vector<const PatternNode*> nodes_;
  std::unordered_map<const PatternNode*, std::uint64_t> places_;  // once there are many
};

// The place of a slice's pattern, and which of its bytes.
struct SlicePlace {
  std::int64_t base = 0;
  std::uint64_t first_byte = 0;
  std::uint64_t len_bytes = 0;
};
[[nodiscard]] inline SlicePlace place_of(const Slice& slice) {
  return {slice.base, slice.first_byte, slice.len_bytes};
}

// Reads one pattern and removes it from `in`. Refuses anything that PatternCode cannot have
// written: forward references, excessive depth, sums beyond 62 bits. Lists are copied out of `in`;
// with `owner`, which keeps the memory of `in`, they stay there.
[[nodiscard]] Result<Pattern> decode_pattern(std::span<const std::byte>& in,
                                             std::shared_ptr<const void> owner = nullptr);
// Refuses a place that the pattern cannot have.
[[nodiscard]] Result<Slice> slice_at(const SlicePlace& place, Pattern pattern);

// Appends the code of a pattern.
void encode(const Pattern& pattern, std::vector<std::byte>& out);

// A slice with its pattern: appends it, or reads one and removes it from `in`.
void encode(const Slice& slice, std::vector<std::byte>& out);
[[nodiscard]] Result<Slice> decode(std::span<const std::byte>& in,
                                   std::shared_ptr<const void> owner = nullptr);

}  // namespace shima
