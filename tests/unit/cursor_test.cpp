// Cursors against the plain list of a slice's bytes: walking, stepping, seeking, clipping.
#include "pattern/cursor.h"

#include <gtest/gtest.h>

#include <limits>

#include "unit/pattern_model.h"

namespace shima::test {
namespace {

// The strip at the cursor equals the list from `at` on, and is within the slice.
void expect_strip_at(const Cursor& cursor, const Bytes& bytes, std::size_t at) {
  ASSERT_EQ(cursor.byte(), at);
  ASSERT_EQ(cursor.bytes_left(), bytes.size() - at);
  ASSERT_EQ(cursor.done(), at == bytes.size());
  if (cursor.done()) return;
  Bytes seen;
  append(seen, cursor.strip());
  ASSERT_GT(seen.size(), 0U);
  ASSERT_LE(seen.size(), bytes.size() - at);
  ASSERT_TRUE(std::equal(seen.begin(), seen.end(), bytes.begin() + as_signed(at)));
}

TEST(Cursor, WalksASliceInDataOrder) {
  for_each_seed(2000, [](Random& random) {
    const auto [slice, bytes] = random_slice(random, random_pattern(random));
    EXPECT_EQ(walk(Cursor(slice)), bytes);
  });
}

TEST(Cursor, AdvancesByAnySteps) {
  for_each_seed(2000, [](Random& random) {
    const auto [slice, bytes] = random_slice(random, random_pattern(random));
    Cursor cursor(slice);
    const std::uint64_t stride = random.one_in(2) ? 10 : bytes.size() / 3 + 1;
    std::size_t at = 0;
    expect_strip_at(cursor, bytes, at);
    while (!cursor.done() && !::testing::Test::HasFailure()) {
      const std::uint64_t step = random.upto(stride);
      cursor.advance(step);
      at = std::min(at + step, bytes.size());
      expect_strip_at(cursor, bytes, at);
    }
    cursor.advance(5);
    EXPECT_TRUE(cursor.done());
  });
}

TEST(Cursor, SeeksAnyByte) {
  for_each_seed(1000, [](Random& random) {
    const auto [slice, bytes] = random_slice(random, random_pattern(random));
    Cursor cursor(slice);
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t at = random.upto(bytes.size() + 3);
      cursor.seek_byte(at);
      expect_strip_at(cursor, bytes, std::min<std::size_t>(at, bytes.size()));
      cursor.advance(random.upto(30));
    }
    cursor.seek_byte(std::numeric_limits<std::uint64_t>::max());
    EXPECT_TRUE(cursor.done());
  });
}

TEST(Cursor, SeeksOffsetsInOrderedPatterns) {
  for_each_seed(2000, [](Random& random) {
    const auto [slice, bytes] = random_slice(random, random_pattern(random, true));
    const Bounds bounds = bounds_of(slice);
    Cursor cursor(slice);
    for (int i = 0; i < 30; ++i) {
      const std::int64_t offset = random.between(bounds.lowest - 20, bounds.highest + 20);
      cursor.seek_offset(offset);
      const auto found = std::ranges::lower_bound(bytes, offset);
      expect_strip_at(cursor, bytes, static_cast<std::size_t>(found - bytes.begin()));
      cursor.advance(random.upto(40));
    }
  });
}

TEST(Cursor, CutsWindowsFromOrderedPatterns) {
  for_each_seed(2000, [](Random& random) {
    const auto [slice, bytes] = random_slice(random, random_pattern(random, true));
    const Bounds bounds = bounds_of(slice);
    Cursor cursor(slice);
    Bytes seen;
    const std::int64_t most = random.one_in(2) ? 30 : 400;
    for (std::int64_t limit = bounds.lowest - 3; !cursor.done(); limit += random.between(0, most)) {
      for_each_strip_below(cursor, limit, [&](const Strip& strip) {
        EXPECT_GT(strip.count * strip.len_bytes, 0U);
        append(seen, strip);
      });
      const auto end = std::ranges::lower_bound(bytes, limit);
      ASSERT_EQ(seen, Bytes(bytes.begin(), end)) << "below " << limit;
      ASSERT_EQ(cursor.byte(), seen.size());
    }
    EXPECT_EQ(seen, bytes);
  });
}

TEST(Cursor, ReportsManyPiecesAtOnce) {
  const Pattern rows = Pattern::strided(10, 1000, Pattern::strided(50, 16, Pattern::contiguous(8)));
  Cursor cursor(Slice{rows, 0, 4, 896});
  EXPECT_EQ(cursor.strip().len_bytes, 4U);  // the rest of a piece
  EXPECT_EQ(cursor.strip().count, 1U);
  cursor.advance(4);
  EXPECT_EQ(cursor.strip().count, 49U);
  cursor.advance(49 * 8);
  EXPECT_EQ(cursor.strip().offset, 1000);
  EXPECT_EQ(cursor.strip().count, 50U);
  cursor.seek_byte(796);
  EXPECT_EQ(cursor.strip().count, 12U);  // whole pieces only
  cursor.advance(96);
  EXPECT_EQ(cursor.strip().len_bytes, 4U);  // the part of the last piece within the slice
}

// A step of 2^50 bytes over a tree of 2^57 pieces takes no longer than the depth.
TEST(Cursor, LongStepsAreShort) {
  Pattern pattern = Pattern::contiguous(1);
  for (int i = 0; i < 6; ++i) {
    const std::int64_t extent = pattern.highest() - pattern.lowest() + 1;
    pattern = Pattern::strided(500, extent, pattern);
  }
  Cursor cursor(whole(pattern));
  Cursor other(whole(pattern));
  const std::uint64_t step = (std::uint64_t{1} << 50) + 12345;
  for (std::uint64_t at = step; at < pattern.len_bytes(); at += step) {
    cursor.advance(step);
    other.seek_byte(at);
    ASSERT_EQ(cursor.strip().offset, other.strip().offset);
    ASSERT_EQ(cursor.strip().count, other.strip().count);
  }
}

TEST(ClipBelow, KeepsWholePiecesOrPartOfOne) {
  const Strip strip{100, 10, 20, 5};  // 100-110, 120-130, ... 180-190
  EXPECT_EQ(clip_below(strip, 100).count, 0U);
  EXPECT_EQ(clip_below(strip, 101).len_bytes, 1U);
  EXPECT_EQ(clip_below(strip, 110).count, 1U);
  EXPECT_EQ(clip_below(strip, 129).count, 1U);
  EXPECT_EQ(clip_below(strip, 130).count, 2U);
  EXPECT_EQ(clip_below(strip, 189).count, 4U);
  EXPECT_EQ(clip_below(strip, 190).count, 5U);
  EXPECT_EQ(clip_below(strip, std::numeric_limits<std::int64_t>::max()).count, 5U);
}

}  // namespace
}  // namespace shima::test
