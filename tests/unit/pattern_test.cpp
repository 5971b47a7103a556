// The properties of a Pattern against the plain list of its bytes; and its normal form.
#include "pattern/pattern.h"

#include <gtest/gtest.h>

#include <limits>

#include "unit/pattern_model.h"

namespace shima::test {
namespace {

using Kind = PatternNode::Kind;

// Every piece as the cursor reports it.
std::vector<Strip> pieces_of(const Pattern& pattern) {
  std::vector<Strip> pieces;
  Cursor cursor(whole(pattern));
  while (!cursor.done()) {
    const Strip strip = cursor.strip();
    for (std::int64_t i = 0; i < as_signed(strip.count); ++i)
      pieces.push_back({strip.offset + i * strip.stride_bytes, strip.len_bytes, 0, 1});
    cursor.advance(strip.len_bytes * strip.count);
  }
  return pieces;
}

void expect_granule_divides(const Pattern& pattern, const std::vector<Strip>& pieces) {
  const std::int64_t granule = as_signed(pattern.granule_bytes());
  ASSERT_GT(granule, 0);
  for (const Strip& piece : pieces) {
    ASSERT_EQ(as_signed(piece.len_bytes) % granule, 0);
    ASSERT_EQ((piece.offset - pieces.front().offset) % granule, 0) << "granule " << granule;
  }
}

TEST(Pattern, AnswersAsItsListOfBytesDoes) {
  for_each_seed(3000, [](Random& random) {
    const Modelled made = random_pattern(random);
    ASSERT_EQ(made.pattern.len_bytes(), made.bytes.size());
    EXPECT_EQ(made.pattern.empty(), made.bytes.empty());
    EXPECT_EQ(made.pattern.lowest(), made.lowest());
    EXPECT_EQ(made.pattern.highest(), made.highest());
    EXPECT_EQ(made.pattern.ordered(), made.ordered());
    EXPECT_EQ(walk(made.pattern), made.bytes);
    if (made.bytes.empty()) return;
    const std::vector<Strip> pieces = pieces_of(made.pattern);
    EXPECT_EQ(made.pattern.piece_count(), pieces.size());
    expect_granule_divides(made.pattern, pieces);
  });
}

TEST(Pattern, OrderedTreesAreKnownAsSuch) {
  for_each_seed(
      500, [](Random& random) { EXPECT_TRUE(random_pattern(random, true).pattern.ordered()); });
}

// Offset 0 of every node is its first byte, so that shifted copies share the tree.
TEST(Pattern, NodesBeginAtTheirFirstByte) {
  for_each_seed(500, [](Random& random) {
    const Modelled made = random_pattern(random);
    EXPECT_EQ(made.pattern.origin(), made.bytes.empty() ? 0 : made.bytes.front());
  });
}

TEST(Pattern, GranuleSeesWhereListsInListsBegin) {
  const Pattern inner =
      Pattern::list(std::vector<std::int64_t>{4, 20, 100}, std::vector<std::uint64_t>{8, 8, 8});
  EXPECT_EQ(inner.granule_bytes(), 8U);
  EXPECT_EQ(Pattern::indexed({Pattern::contiguous(8).shifted(-16), inner}).granule_bytes(), 4U);
}

TEST(Pattern, NothingIsEmpty) {
  EXPECT_TRUE(Pattern::contiguous(0).empty());
  EXPECT_TRUE(Pattern::strided(0, 8, Pattern::contiguous(4)).empty());
  EXPECT_TRUE(Pattern::strided(4, 8, {}).empty());
  EXPECT_TRUE(Pattern::indexed({}).empty());
  EXPECT_TRUE(Pattern::indexed({Pattern{}, Pattern::contiguous(0)}).empty());
  EXPECT_TRUE(Pattern::tiled({}, 100).empty());
  EXPECT_TRUE(Pattern{}.shifted(9).empty());
  EXPECT_TRUE(Pattern{}.ordered());
  EXPECT_EQ(Pattern{}.depth(), 0);
  EXPECT_EQ(Pattern{}.highest(), 0);
}

TEST(PatternNormalForm, AdjacentBlocksAreOnePiece) {
  EXPECT_TRUE(Pattern::strided(10, 8, Pattern::contiguous(8)).is_contiguous());
  EXPECT_TRUE(
      Pattern::strided(4, 40, Pattern::strided(5, 8, Pattern::contiguous(8))).is_contiguous());
  const Pattern list = Pattern::list(std::vector<std::int64_t>{8, 16, 16, 20},
                                     std::vector<std::uint64_t>{8, 0, 4, 9});
  EXPECT_TRUE(list.is_contiguous());
  EXPECT_EQ(list.lowest(), 8);
  EXPECT_EQ(list.highest(), 29);
}

TEST(PatternNormalForm, EqualStepsAreOneStride) {
  const Pattern list =
      Pattern::list(std::vector<std::int64_t>{100, 80, 60}, std::vector<std::uint64_t>{4, 4, 4});
  ASSERT_EQ(list.node()->kind, Kind::strided);
  EXPECT_EQ(list.node()->stride_bytes, -20);
  const Pattern nested = Pattern::strided(3, 200, Pattern::strided(10, 20, Pattern::contiguous(4)));
  ASSERT_EQ(nested.node()->kind, Kind::strided);
  EXPECT_EQ(nested.node()->count, 30U);
  EXPECT_EQ(nested.depth(), 2);
}

TEST(PatternNormalForm, OneOfSomethingIsThatThing) {
  const Pattern inner =
      Pattern::list(std::vector<std::int64_t>{0, 9, 30}, std::vector<std::uint64_t>{4, 4, 4});
  EXPECT_EQ(Pattern::strided(1, 500, inner).node(), inner.node());
  EXPECT_EQ(Pattern::indexed({Pattern{}, inner.shifted(3)}).node(), inner.node());
}

// Neighbours in offset order only are not joined: their data order differs.
TEST(PatternNormalForm, DataOrderIsKept) {
  const Pattern swapped =
      Pattern::list(std::vector<std::int64_t>{8, 0}, std::vector<std::uint64_t>{8, 8});
  EXPECT_FALSE(swapped.is_contiguous());
  EXPECT_FALSE(swapped.ordered());
  EXPECT_EQ(walk(swapped).front(), 8);
}

TEST(Pattern, DepthSaturates) {
  Pattern pattern = Pattern::contiguous(1);
  for (std::int64_t i = 1; i <= 300; ++i)
    pattern = Pattern::indexed({pattern, Pattern::contiguous(1).shifted(i * i + 1)});
  EXPECT_GT(pattern.depth(), Pattern::max_depth);
}

TEST(PatternTiled, BeginsLikeItsTileAndReachesFar) {
  for_each_seed(500, [](Random& random) {
    const Modelled tile = random_pattern(random, true);
    if (tile.bytes.empty()) return;
    const std::int64_t extent = tile.highest() - tile.lowest() + random.between(0, 100);
    const Pattern tiled = Pattern::tiled(tile.pattern, extent);
    EXPECT_TRUE(tiled.ordered());
    EXPECT_GT(tiled.highest(), std::int64_t{1} << 61);
    EXPECT_LE(tiled.highest(), std::int64_t{1} << 62);
    Cursor cursor(whole(tiled));
    const std::uint64_t turn = random.upto(std::uint64_t{1} << 40);
    cursor.seek_byte(turn * tile.bytes.size() + tile.bytes.size() / 2);
    EXPECT_EQ(cursor.strip().offset, tile.bytes[tile.bytes.size() / 2] + as_signed(turn) * extent);
  });
}

TEST(PatternTiled, OddExtentsStillHoldOneTile) {
  const Pattern tile = Pattern::contiguous(10);
  EXPECT_EQ(Pattern::tiled(tile, std::int64_t{1} << 62).len_bytes(), 10U);
  EXPECT_EQ(Pattern::tiled(tile, std::numeric_limits<std::int64_t>::min()).len_bytes(), 10U);
  EXPECT_EQ(Pattern::tiled(tile.shifted(std::int64_t{1} << 62), 20).len_bytes(), 10U);
  EXPECT_GT(Pattern::tiled(tile, 0).len_bytes(), std::uint64_t{1} << 60);
  EXPECT_TRUE(Pattern::tiled(tile, 10).is_contiguous());
  EXPECT_LT(Pattern::tiled(tile, -16).lowest(), -(std::int64_t{1} << 61));
}

TEST(BoundsOf, HoldAllBytesOfASlice) {
  for_each_seed(2000, [](Random& random) {
    const Modelled made = random_pattern(random);
    const auto [slice, bytes] = random_slice(random, made);
    const Bounds bounds = bounds_of(slice);
    if (bytes.empty()) {
      EXPECT_EQ(bounds.lowest, bounds.highest);
      return;
    }
    EXPECT_LE(bounds.lowest, std::ranges::min(bytes));
    EXPECT_GT(bounds.highest, std::ranges::max(bytes));
    EXPECT_GE(bounds.lowest, slice.base + made.lowest());
    EXPECT_LE(bounds.highest, slice.base + made.highest());
    if (!made.pattern.ordered()) return;
    EXPECT_EQ(bounds.lowest, bytes.front());
    EXPECT_EQ(bounds.highest, bytes.back() + 1);
  });
}

// A view whose tiles overlap, which is legal for reading.
TEST(BoundsOf, LittleOfAnEndlessPatternIsLittle) {
  const Pattern tile =
      Pattern::list(std::vector<std::int64_t>{0, 20}, std::vector<std::uint64_t>{10, 10});
  const Bounds bounds = bounds_of({Pattern::tiled(tile, 16), 1000, 100, 40});
  EXPECT_EQ(bounds.lowest, 1000 + 5 * 16);
  EXPECT_EQ(bounds.highest, 1000 + 6 * 16 + 30);
}

}  // namespace
}  // namespace shima::test
