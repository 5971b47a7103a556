// Copies bytes between two patterned places in memory.
//
// Places are addresses (integers): a Slice of memory has its buffer's address in `base`, and then
// `to` or `from` is 0. An address plus an offset need not be inside one object, so pointers cannot
// be used. Cursors report strips on both sides. If one side is contiguous, it uses the piece length
// of the other, so that the inner loop copies `count` equal pieces without visiting either tree.
#pragma once

#include <cstdint>

#include "pattern/cursor.h"

namespace shima {

// `count` pieces at equal distances on both sides.
struct StripPair {
  std::int64_t a_offset = 0;
  std::int64_t b_offset = 0;
  std::int64_t a_stride_bytes = 0;
  std::int64_t b_stride_bytes = 0;
  std::uint64_t len_bytes = 0;
  std::uint64_t count = 0;
};

// The same pieces with the sides exchanged.
[[nodiscard]] inline StripPair swapped(const StripPair& pair) {
  return {pair.b_offset,       pair.a_offset,  pair.b_stride_bytes,
          pair.a_stride_bytes, pair.len_bytes, pair.count};
}

// The longest common part of the beginnings of two strips, which have the same data.
[[nodiscard]] StripPair match(const Strip& a, const Strip& b);

// Copies the pieces of `pair`; offsets of side a count from `to`, of side b from `from`. The two
// sides may not overlap.
void copy_strips(std::uintptr_t to, std::uintptr_t from, const StripPair& pair);

// Copies the same data bytes from one cursor to another until either is done; offsets count from
// `to` and `from`. Returns the bytes copied.
std::uint64_t copy_between(std::uintptr_t to, Cursor& to_cursor, std::uintptr_t from,
                           Cursor& from_cursor);

}  // namespace shima
