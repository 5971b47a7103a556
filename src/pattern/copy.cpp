#include "pattern/copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/copy/distance.h"
#include "base/units.h"

namespace shima {
namespace {

// A piece at an address. The caller owns the memory at that address; this file does not know the
// object around it.
std::byte* at(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

// Strides are added as unsigned numbers: a negative stride wraps, and nothing is read after the
// last piece.
void copy_any(std::uintptr_t to, std::uintptr_t from, const StripPair& pair) {
  for (std::uint64_t i = 0; i < pair.count; ++i) {
    copy_bytes(at(to), at(from), pair.len_bytes);
    to += as_unsigned(pair.a_stride_bytes);
    from += as_unsigned(pair.b_stride_bytes);
  }
}

// With the length known at compile time the copy is a few moves instead of a call.
template <std::size_t Len>
void copy_fixed(std::uintptr_t to, std::uintptr_t from, const StripPair& pair) {
  for (std::uint64_t i = 0; i < pair.count; ++i) {
    std::memcpy(at(to), at(from), Len);
    to += as_unsigned(pair.a_stride_bytes);
    from += as_unsigned(pair.b_stride_bytes);
  }
}

// A division per pair is expensive if one side consists of single pieces, as lists do.
std::uint64_t whole_pieces(const Strip& small, std::uint64_t len_bytes) {
  return small.count == 1 ? 1 : std::min(small.count, len_bytes / small.len_bytes);
}

}  // namespace

StripPair match(const Strip& a, const Strip& b) {
  StripPair pair{
      a.offset, b.offset, a.stride_bytes, b.stride_bytes, std::min(a.len_bytes, b.len_bytes), 1};
  if (a.len_bytes == b.len_bytes) {
    pair.count = std::min(a.count, b.count);
  } else if (a.len_bytes < b.len_bytes) {
    pair.b_stride_bytes = as_signed(a.len_bytes);
    pair.count = whole_pieces(a, b.len_bytes);
  } else {
    pair.a_stride_bytes = as_signed(b.len_bytes);
    pair.count = whole_pieces(b, a.len_bytes);
  }
  return pair;
}

void copy_strips(std::uintptr_t to, std::uintptr_t from, const StripPair& pair) {
  to += as_unsigned(pair.a_offset);
  from += as_unsigned(pair.b_offset);
  switch (pair.len_bytes) {
    case 4:
      return copy_fixed<4>(to, from, pair);
    case 8:
      return copy_fixed<8>(to, from, pair);
    case 16:
      return copy_fixed<16>(to, from, pair);
    case 24:
      return copy_fixed<24>(to, from, pair);
    case 32:
      return copy_fixed<32>(to, from, pair);
    case 64:
      return copy_fixed<64>(to, from, pair);
    case 128:
      return copy_fixed<128>(to, from, pair);
    default:
      return copy_any(to, from, pair);
  }
}

// Pairs are collected before they are copied: the two loops are short enough for several cache
// misses of scattered pieces to be under way at once, which a step between two copies prevents.
std::uint64_t copy_between(std::uintptr_t to, Cursor& to_cursor, std::uintptr_t from,
                           Cursor& from_cursor) {
  std::array<StripPair, 32> pairs;
  std::uint64_t copied = 0;
  while (!to_cursor.done() && !from_cursor.done()) {
    std::size_t count = 0;
    for (; count < pairs.size() && !to_cursor.done() && !from_cursor.done(); ++count) {
      const StripPair pair = match(to_cursor.strip(), from_cursor.strip());
      to_cursor.advance(pair.len_bytes * pair.count);
      from_cursor.advance(pair.len_bytes * pair.count);
      copied += pair.len_bytes * pair.count;
      pairs[count] = pair;
    }
    for (std::size_t i = 0; i < count; ++i) copy_strips(to, from, pairs[i]);
  }
  return copied;
}

}  // namespace shima
