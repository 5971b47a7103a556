// The place of bytes: every logical byte has one place, every place one byte, and domains tile a
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

// The layout of a small file, byte by byte, from the definition: regions, blocks, subfiles in turn.
struct Model {
  std::vector<RegionSpec> regions;
  std::vector<std::pair<int, std::int64_t>> place_of;         // of each logical byte
  std::vector<std::vector<std::int64_t>> logical_of_subfile;  // of each subfile's bytes
};

Model make_model(Random& random, std::int64_t len) {
  Model model;
  std::int64_t begin = 0;
  for (std::int64_t left = pick(random, 1, 4); left > 0; --left) {
    model.regions.push_back({FileOffset{begin}, as_unsigned(pick(random, 1, 20)),
                             static_cast<int>(pick(random, 1, 4))});
    begin += pick(random, 1, 90);
  }
  int first = 0;
  for (std::size_t i = 0; i < model.regions.size(); ++i) {
    const RegionSpec& region = model.regions[i];
    const std::int64_t end =
        i + 1 < model.regions.size() ? std::min(len, model.regions[i + 1].begin.value) : len;
    model.logical_of_subfile.resize(static_cast<std::size_t>(first + region.subfile_count));
    for (std::int64_t at = region.begin.value; at < end; ++at) {
      const std::int64_t block = (at - region.begin.value) / as_signed(region.unit_bytes);
      const int subfile = first + static_cast<int>(block % region.subfile_count);
      auto& bytes = model.logical_of_subfile[static_cast<std::size_t>(subfile)];
      model.place_of.emplace_back(subfile, std::ssize(bytes));
      bytes.push_back(at);
    }
    first += region.subfile_count;
  }
  return model;
}

void check_regions(Random& random) {
  constexpr std::int64_t len = 400;
  const Model model = make_model(random, len);
  const Layout layout = Layout::make(model.regions).value();
  ASSERT_EQ(layout.subfile_count(), std::ssize(model.logical_of_subfile));
  for (std::int64_t at = 0; at < len; ++at) {
    const auto [subfile, offset] = model.place_of[as_unsigned(at)];
    const Extent extent = layout.locate(FileOffset{at}, 1);
    ASSERT_EQ(extent.subfile, subfile) << at;
    ASSERT_EQ(extent.begin.value, offset) << at;
    const FileRange run = layout.run_at(subfile, extent.begin);
    ASSERT_EQ(run.begin.value, at);
    const std::uint64_t together = layout.locate(FileOffset{at}, ~std::uint64_t{0}).len_bytes;
    ASSERT_EQ(run.len_bytes(), together) << at;
    for (std::int64_t next = at; next < std::min(len, run.end.value); ++next)
      ASSERT_EQ(model.place_of[as_unsigned(next)], std::pair(subfile, offset + next - at));
    std::vector<std::uint64_t> sizes;
    for (int i = 0; i < layout.subfile_count(); ++i) {
      const auto& bytes = model.logical_of_subfile[static_cast<std::size_t>(i)];
      const auto below = std::ranges::lower_bound(bytes, at) - bytes.begin();
      ASSERT_EQ(layout.below(i, FileOffset{at}).value, below) << "subfile " << i << " at " << at;
      sizes.push_back(as_unsigned(below));
    }
    ASSERT_EQ(layout.end_of_file(sizes).value, at);
  }
}

TEST(Layout, RegionsAreAsTheyAreDefined) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    check_regions(random);
    if (HasFailure()) return;
  }
}

TEST(Layout, FarOffsetsDoNotOverflow) {
  const Layout plain = Layout::plain();
  EXPECT_EQ(plain.below(0, end_of_space), TargetOffset{end_of_space.value});
  EXPECT_EQ(plain.run_at(0, TargetOffset{5}).begin.value, 5);
  const Layout striped = Layout::striped(largest_unit_bytes, 4096);
  const FileOffset far{(std::int64_t{1} << 62) + 12345};
  const Extent extent = striped.locate(far, 1);
  EXPECT_EQ(striped.run_at(extent.subfile, extent.begin).begin, far);
}

TEST(Layout, BadRegionsAreRefused) {
  const auto refused = [](std::vector<RegionSpec> regions) {
    return !Layout::make(regions).has_value();
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({{{1}, 10, 1}}));
  EXPECT_TRUE(refused({{{0}, 0, 1}}));
  EXPECT_TRUE(refused({{{0}, largest_unit_bytes + 1, 1}}));
  EXPECT_TRUE(refused({{{0}, 10, 0}}));
  EXPECT_TRUE(refused({{{0}, 10, -1}}));
  EXPECT_TRUE(refused({{{0}, 10, 4000}, {{9}, 10, 100}}));
  EXPECT_TRUE(refused({{{0}, 10, 1}, {{0}, 10, 1}}));
  EXPECT_TRUE(refused({{{0}, 10, 1}, {{90}, 10, 1}, {{50}, 10, 1}}));
  EXPECT_FALSE(refused({{{0}, 10, 1}, {{90}, 10, 4095}}));
}

void check_domains(Random& random) {
  const TargetOffset begin{pick(random, 0, 1 << 30)};
  const TargetRange range{begin, begin + pick(random, 0, 1 << pick(random, 0, 30))};
  const int count = static_cast<int>(pick(random, 1, 20));
  const std::int64_t alignment =
      std::array<std::int64_t, 4>{1, 1000, 4096, 1 << 21}[as_unsigned(pick(random, 0, 3))];
  TargetOffset at = range.begin;
  for (int turn = 0; turn < count; ++turn) {
    const TargetRange domain = cut_range(range, count, as_unsigned(alignment), turn);
    EXPECT_EQ(domain.begin, at);
    EXPECT_GE(domain.end, domain.begin);
    at = domain.end;
    EXPECT_TRUE(at >= range.end || at.value % alignment == 0) << at.value;
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
