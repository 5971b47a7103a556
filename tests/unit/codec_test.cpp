// The encoding of slices: decoding returns what was encoded, and refuses damage.
#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>

#include "pattern/codec.h"
#include "unit/pattern_model.h"

namespace shima::test {
namespace {

using Wire = std::vector<std::byte>;

Wire encoded(const Slice& slice) {
  Wire wire;
  encode(slice, wire);
  return wire;
}

Wire words(std::initializer_list<std::int64_t> values) {
  Wire wire(values.size() * sizeof(std::int64_t));
  std::memcpy(wire.data(), std::data(values), wire.size());
  return wire;
}

bool accepted(const Wire& wire) {
  std::span<const std::byte> in(wire);
  return decode(in).has_value();
}

TEST(Codec, BringsBackWhatWasWritten) {
  for_each_seed(1500, [](Random& random) {
    const auto [slice, bytes] = random_slice(random, random_pattern(random));
    const Wire wire = encoded(slice);
    std::span<const std::byte> in(wire);
    const Result<Slice> back = decode(in);
    ASSERT_TRUE(back.has_value()) << describe(back.error());
    EXPECT_TRUE(in.empty());
    EXPECT_EQ(back->base, slice.base);
    EXPECT_EQ(walk(Cursor(*back)), bytes);
    EXPECT_EQ(walk(back->pattern), walk(slice.pattern));
    EXPECT_EQ(encoded(*back), wire);
  });
}

TEST(Codec, ReadsOneDescriptionAfterAnother) {
  const Slice first = whole(Pattern::strided(3, 10, Pattern::contiguous(4)));
  const Slice second{};
  Wire wire = encoded(first);
  encode(second, wire);
  encode(first, wire);
  std::span<const std::byte> in(wire);
  EXPECT_EQ(decode(in)->len_bytes, 12U);
  EXPECT_TRUE(decode(in)->pattern.empty());
  EXPECT_EQ(decode(in)->len_bytes, 12U);
  EXPECT_TRUE(in.empty());
}

TEST(Codec, KeepsFileViews) {
  const Pattern tile =
      Pattern::list(std::vector<std::int64_t>{5, 100, 300}, std::vector<std::uint64_t>{7, 9, 11});
  const Slice view{Pattern::tiled(tile, 512), 4096, std::uint64_t{1} << 40, 1000};
  const Wire wire = encoded(view);
  std::span<const std::byte> in(wire);
  const Result<Slice> back = decode(in);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(walk(Cursor(*back)), walk(Cursor(view)));
}

TEST(Codec, KeepsTilesThatReachBeyondTheirExtent) {
  const Pattern tile =
      Pattern::list(std::vector<std::int64_t>{-48, 60}, std::vector<std::uint64_t>{8, 4});
  const Slice memory{Pattern::tiled(tile, 21), 1000, 0, 24};
  const Wire wire = encoded(memory);
  std::span<const std::byte> in(wire);
  const Result<Slice> back = decode(in);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(walk(Cursor(*back)), walk(Cursor(memory)));
}
TEST(Codec, WritesSharedSubtreesOnce) {
  Pattern pattern = Pattern::contiguous(1);
  for (std::int64_t i = 0; i < 40; ++i) {
    const std::int64_t extent = pattern.highest();
    pattern =
        Pattern::indexed({pattern, pattern.shifted(extent + 1), pattern.shifted(3 * extent + 7)});
    if (extent > (std::int64_t{1} << 50)) break;
  }
  EXPECT_LT(encoded(whole(pattern)).size(), 8192U);
}

TEST(Codec, RefusesDamage) {
  const Wire good =
      words({1, 0, 8, 0, 0, 0, 0, 8});  // one node: contiguous(8); root 0 at 0, bytes 0 to 8
  ASSERT_TRUE(accepted(good));
  for (std::size_t len = 0; len < good.size(); ++len)
    EXPECT_FALSE(accepted({good.begin(), good.begin() + as_signed(len)})) << len;
  const std::int64_t far = std::int64_t{1} << 62;
  EXPECT_FALSE(accepted(words({1, 0, 0, 0, 0, 0, 0, 0})));        // an empty piece
  EXPECT_FALSE(accepted(words({1, 0, far + 1, 0, 0, 0, 0, 8})));  // too long
  EXPECT_FALSE(accepted(words({1, 3, 8, 0, 0, 0, 0, 8})));        // no such kind
  EXPECT_FALSE(accepted(words({1, 0, 8, 1, 0, 0, 0, 8})));        // no such root
  EXPECT_FALSE(accepted(words({1, 0, 8, 0, 0, 0, 1, 8})));        // more bytes than the pattern has
  EXPECT_FALSE(accepted(words({1, 0, 8, 0, 0, 0, -1, 2})));       // the same, by overflow
  EXPECT_FALSE(accepted(words({1, 0, 8, 0, far, 0, 0, 8})));      // offset too large
  EXPECT_FALSE(
      accepted(words({1, 0, 8, 0, 0, 2 * (far - 1) + 1, 0, 8})));  // base and length overflow
  EXPECT_FALSE(accepted(words({1, 1, 2, 8, 0, 0, 0, 0, 8})));      // its own child
  EXPECT_FALSE(
      accepted(words({2, 0, 8, 1, far, 8, 0, 1, 0, 0, 0, 8})));  // product of count and length
  EXPECT_FALSE(
      accepted(words({2, 0, 8, 1, 9, far - 1, 0, 1, 0, 0, 0, 8})));  // product of count and stride
  EXPECT_FALSE(
      accepted(words({2, 0, 8, 2, far, 0, 0, 1, 0, 0, 0, 8})));  // a list longer than its words
}

TEST(Codec, RefusesWhatCannotBeWalked) {
  Pattern pattern = Pattern::contiguous(1);
  while (pattern.depth() < Pattern::max_depth)
    pattern = Pattern::indexed(
        {pattern, Pattern::contiguous(1).shifted(pattern.highest() + pattern.depth())});
  EXPECT_TRUE(accepted(encoded(whole(pattern))));
  EXPECT_EQ(walk(pattern).size(), pattern.len_bytes());
  pattern = Pattern::indexed({pattern, Pattern::contiguous(1).shifted(pattern.highest() + 99)});
  EXPECT_FALSE(accepted(encoded(whole(pattern))));
}

}  // namespace
}  // namespace shima::test
