// Random pff_wheres beside the plain list of their bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "shima/pff.h"

namespace shima::test {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(engine_);
  }
  std::size_t upto(std::size_t most) {
    return static_cast<std::size_t>(between(0, static_cast<std::int64_t>(most)));
  }
  bool one_in(std::int64_t n) { return between(1, n) == 1; }

 private:
  std::mt19937_64 engine_;
};

// The byte at an offset of a written file; never 0.
inline unsigned char value_at(std::int64_t offset) {
  return static_cast<unsigned char>(
      (static_cast<std::uint64_t>(offset) * 0x9e3779b97f4a7c15U) >> 56 | 1);
}

// A pff_where with the arrays that it points to, and its offsets in order.
struct Request {
  std::vector<pff_level> levels;
  std::vector<pff_piece> pieces;
  pff_where where{};
  std::vector<std::int64_t> bytes;

  Request() = default;
  Request(Request&&) = default;  // the arrays of `where` do not move
  Request& operator=(Request&&) = default;
};

inline void append_run(std::vector<std::int64_t>& bytes, std::int64_t from, std::uint64_t len) {
  for (std::uint64_t i = 0; i < len; ++i) bytes.push_back(from + static_cast<std::int64_t>(i));
}

inline Request a_span(Dice& dice) {
  Request made;
  const auto offset = dice.between(0, 20'000);
  const auto size = static_cast<std::uint64_t>(dice.between(0, 9'000));
  made.where = pff_span(offset, size);
  append_run(made.bytes, offset, size);
  return made;
}

inline Request a_stride(Dice& dice) {
  Request made;
  const auto element = dice.between(1, dice.one_in(3) ? 5'000 : 90);
  const auto size = dice.between(0, element * 40);
  const auto stride = dice.one_in(8) ? -element : dice.between(element, element * 5);
  const auto offset = dice.between(0, 5'000) + (stride < 0 ? size + element : 0);
  made.where = pff_stride(offset, static_cast<std::uint64_t>(element), stride,
                          static_cast<std::uint64_t>(size));
  for (std::int64_t at = 0; at < size; ++at)
    made.bytes.push_back(offset + at / element * stride + at % element);
  return made;
}

inline void walk(Request& made, std::size_t level, std::int64_t at, std::uint64_t element) {
  if (level == made.levels.size()) return append_run(made.bytes, at, element);
  for (std::uint64_t i = 0; i < made.levels[level].count; ++i)
    walk(made, level + 1, at + static_cast<std::int64_t>(i) * made.levels[level].stride, element);
}

inline Request a_nest(Dice& dice) {
  Request made;
  const auto element = dice.between(1, 60);
  std::int64_t extent = element;
  for (std::size_t i = 1 + dice.upto(2); i > 0; --i) {
    const auto count = dice.between(dice.one_in(9) ? 0 : 1, 7);
    const auto stride = extent + dice.between(0, extent);
    made.levels.insert(made.levels.begin(), {static_cast<std::uint64_t>(count), stride});
    extent = stride * std::max<std::int64_t>(count, 1);
  }
  const auto offset = dice.between(0, 3'000);
  made.where = pff_nested(offset, static_cast<std::uint64_t>(element), made.levels.data(),
                          made.levels.size());
  walk(made, 0, offset, static_cast<std::uint64_t>(element));
  return made;
}

// In order without overlaps, or in any order with overlaps.
inline Request a_list(Dice& dice, bool ordered) {
  Request made;
  std::int64_t at = dice.between(0, 500);
  for (std::size_t i = dice.upto(50); i > 0; --i) {
    const auto size = dice.between(0, dice.one_in(4) ? 900 : 64);
    if (!ordered) at = dice.between(0, 30'000);
    made.pieces.push_back({at, static_cast<std::uint64_t>(size)});
    append_run(made.bytes, at, static_cast<std::uint64_t>(size));
    at += size + dice.between(0, 300);
  }
  made.where = pff_list(made.pieces.data(), made.pieces.size());
  return made;
}

inline Request a_request(Dice& dice) {
  switch (dice.upto(4)) {
    case 0:
      return a_span(dice);
    case 1:
      return a_stride(dice);
    case 2:
      return a_nest(dice);
    default:
      return a_list(dice, dice.one_in(2));
  }
}

// Memory for `len` bytes, no byte of it twice: packed, in a stride or in a list.
inline Request some_memory(Dice& dice, std::size_t len) {
  Request made;
  const auto kind = dice.upto(2);
  if (kind == 1) {
    const auto element = dice.between(1, 300);
    const auto stride = element + dice.between(0, 100);
    made.where = pff_stride(dice.between(0, 64), static_cast<std::uint64_t>(element), stride, len);
    for (std::int64_t at = 0; at < static_cast<std::int64_t>(len); ++at)
      made.bytes.push_back(made.where.offset + at / element * stride + at % element);
    return made;
  }
  std::int64_t at = 0;
  while (kind == 2 && made.bytes.size() < len) {
    const std::size_t size = std::min(len - made.bytes.size(), 1 + dice.upto(500));
    made.pieces.push_back({at, size});
    append_run(made.bytes, at, size);
    at += static_cast<std::int64_t>(size) + dice.between(0, 40);
  }
  if (kind == 2) {
    made.where = pff_list(made.pieces.data(), made.pieces.size());
    return made;
  }
  made.where = pff_span(0, len);
  append_run(made.bytes, 0, len);
  return made;
}

inline std::size_t reach_of(const Request& request) {
  std::int64_t highest = 0;
  for (const std::int64_t byte : request.bytes) highest = std::max(highest, byte + 1);
  return static_cast<std::size_t>(highest);
}

// A buffer in which the bytes of `memory` are the expected ones at the offsets of `file`.
inline std::vector<unsigned char> filled(const Request& file, const Request& memory) {
  std::vector<unsigned char> buffer(reach_of(memory) + 1, 0xEE);
  for (std::size_t i = 0; i < file.bytes.size(); ++i)
    buffer[static_cast<std::size_t>(memory.bytes[i])] = value_at(file.bytes[i]);
  return buffer;
}

}  // namespace shima::test
