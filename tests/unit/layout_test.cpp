// Where bytes lie: every logical byte has one place, every place one byte, and domains tile a
// range.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "layout/layout.h"

namespace shima {
namespace {

using Random = std::mt19937_64;

std::int64_t pick(Random& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

TEST(Layout, APlainFileIsItself) {
  const Extent extent = Layout::plain().locate(FileOffset{123456789012}, std::uint64_t{1} << 60);
  EXPECT_EQ(extent.subfile, 0);
  EXPECT_EQ(extent.begin.value, 123456789012);
  EXPECT_EQ(extent.len_bytes, std::uint64_t{1} << 60);
}

// Back from a place in a subfile to the logical offset, by the definition of striping.
std::int64_t logical_of(const Extent& extent, std::int64_t unit, int count) {
  const std::int64_t block = extent.begin.value / unit;
  return (block * count + extent.subfile) * unit + extent.begin.value % unit;
}

TEST(Layout, StripingGoesThereAndBack) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    const std::int64_t unit = pick(random, 1, 1 << pick(random, 1, 20));
    const int count = static_cast<int>(pick(random, 1, 9));
    const Layout layout = Layout::striped(as_unsigned(unit), count);
    EXPECT_EQ(layout.subfile_count(), count);
    const std::int64_t at = pick(random, 0, std::int64_t{1} << 40);
    const std::int64_t len = pick(random, 1, 3 * unit);
    const Extent extent = layout.locate(FileOffset{at}, as_unsigned(len));
    EXPECT_EQ(logical_of(extent, unit, count), at) << "seed " << seed;
    EXPECT_EQ(as_signed(extent.len_bytes), std::min(len, unit - at % unit)) << "seed " << seed;
    ASSERT_LT(extent.subfile, count);
  }
}

TEST(Layout, NoTwoBytesShareAPlaceAndSubfilesHaveNoHoles) {
  const Layout layout = Layout::striped(7, 3);
  std::array<std::set<std::int64_t>, 3> places;
  for (std::int64_t at = 0; at < 210; ++at) {
    const Extent extent = layout.locate(FileOffset{at}, 1);
    EXPECT_TRUE(places[static_cast<std::size_t>(extent.subfile)].insert(extent.begin.value).second)
        << at;
  }
  for (const auto& taken : places) {
    EXPECT_EQ(taken.size(), 70U);
    EXPECT_EQ(*taken.rbegin(), 69);
  }
}

void check_domains(Random& random) {
  const FileOffset begin{pick(random, 0, 1 << 30)};
  const FileRange range{begin, begin + pick(random, 0, 1 << pick(random, 0, 30))};
  const int count = static_cast<int>(pick(random, 1, 20));
  const std::int64_t alignment =
      std::array<std::int64_t, 4>{1, 1000, 4096, 1 << 21}[as_unsigned(pick(random, 0, 3))];
  const auto domains = cut_into_domains(range, count, as_unsigned(alignment));
  EXPECT_LE(domains.size(), static_cast<std::size_t>(count));
  FileOffset at = range.begin;
  for (const FileRange& domain : domains) {
    EXPECT_EQ(domain.begin, at);
    EXPECT_FALSE(domain.empty());
    at = domain.end;
    EXPECT_TRUE(at == range.end || at.value % alignment == 0) << at.value;
    EXPECT_LE(as_signed(domain.len_bytes()),
              as_signed(range.len_bytes()) / count + 2 * alignment + 1);
  }
  EXPECT_EQ(at, range.empty() ? range.begin : range.end);
}

TEST(Layout, DomainsTileTheRange) {
  for (std::uint64_t seed = 1; seed <= 5000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    check_domains(random);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace shima
