// Random patterns with the plain list of their bytes, for tests that compare the two.
//
// Rounds are numbered by seed: a failure prints SHIMA_SEED=n, and with that variable in the
// environment a run begins with the round that failed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "base/units.h"
#include "pattern/cursor.h"

namespace shima::test {

using Bytes = std::vector<std::int64_t>;  // offsets in data order

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  // From `least` to `most`, both included.
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(engine_);
  }
  std::uint64_t upto(std::uint64_t most) { return as_unsigned(between(0, as_signed(most))); }
  bool one_in(std::int64_t n) { return between(1, n) == 1; }

 private:
  std::mt19937_64 engine_;
};

inline std::uint64_t first_seed() {
  const char* text = std::getenv("SHIMA_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

// Runs `round(random)` for many seeds, up to the first that fails.
template <class Round>
void for_each_seed(int rounds, Round round) {
  const std::uint64_t first = first_seed();
  for (std::uint64_t seed = first; seed < first + as_unsigned(rounds); ++seed) {
    SCOPED_TRACE("SHIMA_SEED=" + std::to_string(seed));
    Random random(seed);
    round(random);
    if (::testing::Test::HasFailure()) return;
  }
}

struct Modelled {
  Pattern pattern;
  Bytes bytes;

  [[nodiscard]] std::int64_t lowest() const { return bytes.empty() ? 0 : std::ranges::min(bytes); }
  [[nodiscard]] std::int64_t highest() const {
    return bytes.empty() ? 0 : std::ranges::max(bytes) + 1;
  }
  [[nodiscard]] bool ordered() const {
    return std::ranges::adjacent_find(bytes, std::greater_equal<>()) == bytes.end();
  }
};

inline Modelled moved(const Modelled& from, std::int64_t displacement) {
  Modelled to{from.pattern.shifted(displacement), from.bytes};
  for (std::int64_t& byte : to.bytes) byte += displacement;
  return to;
}

inline void append(Bytes& to, const Bytes& bytes, std::int64_t displacement) {
  for (const std::int64_t byte : bytes) to.push_back(byte + displacement);
}

inline Modelled piece(std::uint64_t len_bytes) {
  Modelled made{Pattern::contiguous(len_bytes), {}};
  for (std::int64_t i = 0; i < as_signed(len_bytes); ++i) made.bytes.push_back(i);
  return made;
}

inline Modelled repeated(std::uint64_t count, std::int64_t stride_bytes, const Modelled& child) {
  Modelled made{Pattern::strided(count, stride_bytes, child.pattern), {}};
  for (std::int64_t i = 0; i < as_signed(count); ++i)
    append(made.bytes, child.bytes, i * stride_bytes);
  return made;
}

inline Modelled together(const std::vector<Modelled>& children) {
  std::vector<Pattern> patterns;
  Modelled made;
  for (const Modelled& child : children) {
    patterns.push_back(child.pattern);
    append(made.bytes, child.bytes, 0);
  }
  made.pattern = Pattern::indexed(std::move(patterns));
  return made;
}

// Creates random trees whose numbers are all multiples of `unit`.
class Maker {
 public:
  Maker(Random& random, bool ordered)
      : random_(random), ordered_(ordered), unit_(random.one_in(3) ? 8 : 1) {}

  Modelled tree(int levels) {
    Modelled made = levels == 0 || random_.one_in(6) ? leaf()
                    : random_.one_in(8)              ? many_pieces()
                    : random_.one_in(2)              ? stride(levels)
                                                     : list(levels);
    return random_.one_in(3) ? moved(made, distance(200)) : made;
  }

 private:
  Modelled leaf() { return piece(as_unsigned(unit_ * random_.between(1, 24))); }
  // More than a block of a PieceList.
  Modelled many_pieces() {
    std::vector<Modelled> pieces;
    std::int64_t end = distance(100);
    for (std::int64_t i = random_.between(60, 150); i > 0; --i) {
      const Modelled made = piece(as_unsigned(unit_ * random_.between(1, 3)));
      const std::int64_t at = end + unit_ * random_.between(ordered_ ? 0 : -2, 4);
      pieces.push_back(moved(made, at));
      end = at + made.highest();
    }
    return together(pieces);
  }
  std::int64_t distance(std::int64_t most) { return unit_ * random_.between(-most, most); }

  Modelled stride(int levels) {
    const Modelled child = tree(levels - 1);
    if (child.bytes.empty()) return child;
    const std::uint64_t most =
        std::max<std::uint64_t>(1, std::min<std::uint64_t>(6, 4000 / child.bytes.size()));
    return repeated(1 + random_.upto(most - 1), stride_over(child), child);
  }
  std::int64_t stride_over(const Modelled& child) {
    const std::int64_t extent = child.highest() - child.lowest();
    if (random_.one_in(3)) return extent;
    if (ordered_) return extent + unit_ * random_.between(0, 40);
    switch (random_.between(0, 3)) {
      case 0:
        return 0;
      case 1:
        return -extent;
      case 2:
        return child.pattern.node()->stride_bytes * as_signed(child.pattern.node()->count);
      default:
        return distance(300);
    }
  }

  Modelled list(int levels) {
    std::vector<Modelled> children;
    std::int64_t end = distance(100);
    const std::int64_t count = random_.between(1, 7);
    for (std::int64_t i = 0; i < count; ++i) {
      const bool again = !children.empty() && random_.one_in(3);
      const Modelled child = again                ? children.back()
                             : random_.one_in(12) ? Modelled{}
                                                  : tree(levels - 1);
      const std::int64_t gap = random_.one_in(3) ? 0 : unit_ * random_.between(0, 60);
      const std::int64_t start = ordered_ || random_.one_in(2) ? end + gap : distance(400);
      children.push_back(moved(child, start - child.lowest()));
      if (!child.bytes.empty()) end = children.back().highest();
      if (children.back().bytes.size() > 1500) break;
    }
    return together(children);
  }

  Random& random_;
  bool ordered_;
  std::int64_t unit_;
};

inline Modelled random_pattern(Random& random, bool ordered) {
  Maker maker(random, ordered);
  return maker.tree(static_cast<int>(random.between(0, 4)));
}
inline Modelled random_pattern(Random& random) { return random_pattern(random, random.one_in(2)); }

struct ModelledSlice {
  Slice slice;
  Bytes bytes;
};

inline ModelledSlice random_slice(Random& random, const Modelled& whole) {
  const std::uint64_t len = whole.bytes.size();
  const std::uint64_t first = random.one_in(3) ? 0 : random.upto(len);
  const std::uint64_t left = len - first;
  const std::uint64_t taken = random.one_in(3) ? left : random.upto(left);
  const std::int64_t base = random.between(-1000, 1000);
  ModelledSlice made{{whole.pattern, base, first, taken}, {}};
  for (std::uint64_t i = first; i < first + taken; ++i) made.bytes.push_back(whole.bytes[i] + base);
  return made;
}

inline void append(Bytes& to, const Strip& strip) {
  for (std::int64_t i = 0; i < as_signed(strip.count); ++i) {
    for (std::int64_t byte = 0; byte < as_signed(strip.len_bytes); ++byte)
      to.push_back(strip.offset + i * strip.stride_bytes + byte);
  }
}

// All bytes from the cursor's position on.
inline Bytes walk(Cursor cursor) {
  Bytes bytes;
  while (!cursor.done()) {
    const Strip strip = cursor.strip();
    append(bytes, strip);
    cursor.advance(strip.len_bytes * strip.count);
  }
  return bytes;
}

inline Slice whole(const Pattern& pattern) { return {pattern, 0, 0, pattern.len_bytes()}; }
inline Bytes walk(const Pattern& pattern) { return walk(Cursor(whole(pattern))); }

}  // namespace shima::test
