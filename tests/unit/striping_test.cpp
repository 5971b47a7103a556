// The regions of a file from hints and lists of targets.
#include <gtest/gtest.h>

#include "file/striping.h"

namespace shima {
namespace {

const std::vector<TargetPlace> four{{"a", "/a"}, {"b", "/b"}, {"c", "/c"}, {"d", "/d"}};

Hints hints_of(std::initializer_list<HintSetting> settings) {
  Hints hints;
  for (const auto& [key, value] : settings) EXPECT_TRUE(apply(hints, key, value).value()) << key;
  return hints;
}

using Targets = std::vector<std::string>;

TEST(Striping, FactorAndUnitOverConfiguredTargets) {
  const auto regions =
      regions_for(hints_of({{"striping_factor", "3"}, {"striping_unit", "64K"}}), four);
  ASSERT_TRUE(regions.has_value());
  EXPECT_EQ(*regions, (std::vector<StripedRegion>{{{0}, 65536, {"a", "b", "c"}}}));
}

TEST(Striping, TheOrderTurnsAndRepeats) {
  const auto turned =
      regions_for(hints_of({{"striping_factor", "5"}, {"start_iodevice", "2"}}), four);
  EXPECT_EQ(turned->front().targets, (Targets{"c", "d", "a", "b", "c"}));
  EXPECT_EQ(turned->front().unit_bytes, default_unit_bytes);
  const auto named = regions_for(hints_of({{"shima_targets", "d,a"}}), four);
  EXPECT_EQ(named->front().targets, (Targets{"d", "a"}));
}

TEST(Striping, RegionsByNumberAndByName) {
  const auto regions =
      regions_for(hints_of({{"shima_regions", "0:64K:1,64K:1M:4,1G:4M:d+b"}}), four);
  ASSERT_TRUE(regions.has_value());
  EXPECT_EQ(*regions, (std::vector<StripedRegion>{{{0}, 65536, {"a"}},
                                                  {{65536}, 1 << 20, {"a", "b", "c", "d"}},
                                                  {{1 << 30}, 4 << 20, {"d", "b"}}}));
}

TEST(Striping, WhatCannotBeMeantIsRefused) {
  for (const char* text : {"0:64K", "0:64K:0", "0:64K:-1", "0:64K:a/b", "x:64K:1", "0:y:1",
                           "0:1:1:1", "0:64K:1,,", "0:64K:99999"})
    EXPECT_FALSE(regions_for(hints_of({{"shima_regions", text}}), four).has_value()) << text;
  EXPECT_FALSE(regions_for(hints_of({{"shima_targets", "a,../b"}}), four).has_value());
  EXPECT_FALSE(regions_for(hints_of({{"striping_factor", "2"}}), {}).has_value());
  EXPECT_FALSE(regions_for(hints_of({{"striping_factor", "5000"}}), four).has_value());
}

TEST(Striping, WhatIsToldOfAFileMakesTheSameFileAgain) {
  const MasterFile master{
      {std::string(32, 'a')}, {{{0}, 65536, {"a"}}, {{65536}, 1 << 20, {"c", "b", "c"}}}, {}};
  Hints hints;
  describe_striping(master, hints);
  EXPECT_EQ(hints.striping_factor, 3);
  EXPECT_EQ(regions_for(decode_hints(encode_hints(hints)).value(), four).value(), master.regions);
}

TEST(Striping, ListsOfTargets) {
  EXPECT_EQ(parse_target_list("a=/x:b=/y/z/:/mnt/disk0/").value(),
            (std::vector<TargetPlace>{{"a", "/x"}, {"b", "/y/z/"}, {"disk0", "/mnt/disk0/"}}));
  EXPECT_EQ(parse_target_file("# disks\na /x\n\n  b\t/with space # and more\n").value(),
            (std::vector<TargetPlace>{{"a", "/x"}, {"b", "/with space"}}));
  for (const char* text : {"a=x", "a=", "=/x", "a=/x:a=/y", "a b=/x", "beside=/x", "/", "a/b=/x"})
    EXPECT_FALSE(parse_target_list(text).has_value()) << text;
  EXPECT_FALSE(parse_target_file("a\n").has_value());
}

TEST(Hints, EncodedOnesAreTheSameAgain) {
  EXPECT_EQ(encode_hints(Hints{}), "");
  const Hints hints = hints_of({{"cb_nodes", "3"},
                                {"romio_cb_write", "disable"},
                                {"file_perm", "0640"},
                                {"direct_read", "true"},
                                {"shima_targets", "a,b"},
                                {"shima_reach", "pack"},
                                {"start_iodevice", "1"}});
  EXPECT_EQ(decode_hints(encode_hints(hints)).value(), hints);
}

}  // namespace
}  // namespace shima
