// Random accesses of members: patterns in the file and in memory, and the value of each byte.
//
// The file side is in order, as a view that is written must be, or it has pieces in any order that
// overlap and repeat, as a request by PFF or a view that is only read may have. The memory side is
// in any order and overlaps nowhere.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "base/units.h"
#include "pattern/cursor.h"

namespace shima {

using Random = std::mt19937_64;

inline std::uint64_t pick(Random& random, std::uint64_t low, std::uint64_t high) {
  return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
}

inline std::byte value_at(std::int64_t offset) {
  return static_cast<std::byte>((static_cast<std::uint64_t>(offset) * 0x9e3779b97f4a7c15U) >> 56 |
                                1);
}

// An ordered list of so many pieces that its description is in a message's lasting part.
inline Pattern random_list(Random& random, std::uint64_t unit) {
  std::vector<std::int64_t> offsets;
  std::vector<std::uint64_t> lens;
  std::int64_t at = 0;
  for (std::uint64_t i = pick(random, 100, 400); i > 0; --i) {
    at += static_cast<std::int64_t>(unit * pick(random, 0, 3));
    offsets.push_back(at);
    lens.push_back(unit * pick(random, 1, 4));
    at += static_cast<std::int64_t>(lens.back());
  }
  return Pattern::list(offsets, lens);
}

// An ordered tile: pieces with gaps, regular or not, at most some KiB long.
inline Pattern random_tile(Random& random, int depth = 2) {
  const std::uint64_t unit = std::array<std::uint64_t, 4>{1, 4, 8, 64}[pick(random, 0, 3)];
  if (depth == 2 && pick(random, 0, 4) == 0) return random_list(random, unit);
  if (depth == 0 || pick(random, 0, 3) == 0) return Pattern::contiguous(unit * pick(random, 1, 40));
  const Pattern child = random_tile(random, depth - 1);
  const auto span = child.highest() - child.lowest();
  if (pick(random, 0, 1) == 0) {
    const auto gap = static_cast<std::int64_t>(unit * pick(random, 0, 30));
    return Pattern::strided(pick(random, 1, 6), span + gap, child);
  }
  std::vector<Pattern> children;
  std::int64_t at = 0;
  for (std::uint64_t i = pick(random, 1, 5); i > 0; --i) {
    at += static_cast<std::int64_t>(unit * pick(random, 0, 20));
    children.push_back(child.shifted(at - child.lowest()));
    at += span;
  }
  return Pattern::indexed(std::move(children));
}

// Pieces one after the other, with gaps.
struct Pieces {
  std::vector<std::pair<std::int64_t, std::uint64_t>> list;  // offset and length

  // So many that they have `least_bytes`.
  Pieces(Random& random, std::uint64_t least_bytes, std::uint64_t longest) {
    std::int64_t at = 0;
    for (std::uint64_t bytes = 0; bytes < least_bytes; bytes += list.back().second) {
      at += static_cast<std::int64_t>(pick(random, 0, longest / 2));
      list.emplace_back(at, pick(random, 1, longest));
      at += static_cast<std::int64_t>(list.back().second);
    }
  }
  // In any order, or from the last to the first.
  void disorder(Random& random) {
    if (pick(random, 0, 1) == 0) {
      std::ranges::reverse(list);
    } else {
      std::ranges::shuffle(list, random);
    }
  }
  [[nodiscard]] Pattern pattern() const {
    std::vector<std::int64_t> offsets;
    std::vector<std::uint64_t> lens;
    for (const auto& [offset, len] : list) {
      offsets.push_back(offset);
      lens.push_back(len);
    }
    return Pattern::list(offsets, lens);
  }
};

struct Access {
  Slice file;
  Slice memory;  // relative to the start of `buffer`
  std::vector<std::byte> buffer;
};

inline Pattern random_memory(Random& random, std::uint64_t len) {
  if (pick(random, 0, 4) == 0) {
    Pieces pieces(random, len + 1, 100);
    pieces.disorder(random);
    return pieces.pattern();
  }
  const Pattern element = pick(random, 0, 1) == 0 ? Pattern::contiguous(8) : random_tile(random);
  const auto step =
      element.highest() + static_cast<std::int64_t>(pick(random, 0, 1) * pick(random, 0, 100));
  const std::uint64_t count = len / element.len_bytes() + 1;
  if (pick(random, 0, 4) != 0) return Pattern::strided(count, step, element);
  const std::int64_t last = static_cast<std::int64_t>(count - 1) * step;
  return Pattern::strided(count, -step, element).shifted(last);
}

inline Access access_to(Random& random, const Slice& file) {
  const Pattern memory = random_memory(random, file.len_bytes);
  return {file,
          {memory, 0, 0, file.len_bytes},
          std::vector<std::byte>(static_cast<std::size_t>(memory.highest()), std::byte{0xAA})};
}

// `large`: in pieces that are moved from where they are in a message (large_run_bytes).
inline Access random_access(Random& random, bool large) {
  const Pattern tile = large ? Pattern::contiguous(pick(random, 4096, 20000)) : random_tile(random);
  const auto extent = tile.highest() + static_cast<std::int64_t>(pick(random, 0, 2000));
  return access_to(random,
                   {Pattern::tiled(tile, extent), static_cast<std::int64_t>(pick(random, 0, 5000)),
                    pick(random, 0, 300), pick(random, 0, 9) == 0 ? 0 : pick(random, 1, 60000)});
}

// Pieces of the file in any order, some twice and some over others.
inline Access disordered_access(Random& random) {
  Pieces pieces(random, pick(random, 1, 30000), 500);
  for (std::uint64_t i = pick(random, 1, 5); i > 0; --i) {
    const auto piece = pieces.list[pick(random, 0, pieces.list.size() - 1)];
    pieces.list.emplace_back(piece.first + static_cast<std::int64_t>(pick(random, 0, 1) * 3),
                             piece.second);
  }
  pieces.disorder(random);
  const Pattern pattern = pieces.pattern();
  return access_to(
      random, {pattern, static_cast<std::int64_t>(pick(random, 0, 5000)), 0, pattern.len_bytes()});
}

// Calls visit(file offset, memory offset) for every data byte.
template <class Visit>
void each_byte(const Access& access, Visit visit) {
  Cursor file(access.file);
  Cursor memory(access.memory);
  for (; !file.done(); file.advance(1), memory.advance(1))
    visit(file.strip().offset, memory.strip().offset);
}

}  // namespace shima
