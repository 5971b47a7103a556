#include <gtest/gtest.h>

#include <algorithm>

#include "file/hints/hint_sources.h"

namespace shima {
namespace {

std::string value_of(const Hints& hints, std::string_view key) {
  const auto settings = effective(hints);
  const auto found = std::ranges::find(settings, key, &HintSetting::first);
  return found == settings.end() ? "(not set)" : found->second;
}

TEST(Hints, KnownKeysSetTypedFields) {
  Hints hints;
  EXPECT_TRUE(*apply(hints, "cb_nodes", "3"));
  EXPECT_TRUE(*apply(hints, "cb_buffer_size", "16777216"));
  EXPECT_TRUE(*apply(hints, "romio_cb_write", "disable"));
  EXPECT_TRUE(*apply(hints, "file_perm", "0640"));
  EXPECT_TRUE(*apply(hints, "start_iodevice", "-1"));
  EXPECT_TRUE(*apply(hints, "shima_reach", "pack"));
  EXPECT_TRUE(*apply(hints, "shima_collective", "two_phase"));
  EXPECT_EQ(hints.cb_nodes, 3);
  EXPECT_EQ(hints.cb_buffer_size, 16777216u);
  EXPECT_EQ(hints.romio_cb_write, Toggle::disable);
  EXPECT_EQ(hints.romio_cb_read, Toggle::automatic);
  EXPECT_EQ(hints.file_perm, 0640);
  EXPECT_EQ(hints.start_iodevice, -1);
  EXPECT_EQ(hints.shima_reach, Path::pack);
  EXPECT_EQ(hints.shima_collective, Strategy::two_phase);
}

TEST(Hints, BytesTakeUnits) {
  Hints hints;
  EXPECT_TRUE(*apply(hints, "cb_buffer_size", "64k"));
  EXPECT_EQ(hints.cb_buffer_size, 65536u);
  EXPECT_TRUE(*apply(hints, "cb_buffer_size", "2G"));
  EXPECT_EQ(hints.cb_buffer_size, std::uint64_t{2} << 30);
}

TEST(Hints, UnknownKeysAreNotErrors) {
  Hints hints;
  EXPECT_FALSE(*apply(hints, "no_such_hint", "1"));
  EXPECT_EQ(hints, Hints{});
}

TEST(Hints, BadValuesNameKeyRuleAndAdvice) {
  const std::vector<HintSetting> bad = {{"cb_nodes", "-1"},
                                        {"cb_nodes", "four"},
                                        {"cb_nodes", ""},
                                        {"cb_nodes", "2x"},
                                        {"cb_nodes", "99999999999"},
                                        {"cb_buffer_size", "K"},
                                        {"cb_buffer_size", "-4K"},
                                        {"cb_buffer_size", "9999999999G"},
                                        {"romio_ds_write", "yes"},
                                        {"file_perm", "0888"},
                                        {"collective_buffering", "1"},
                                        {"shima_reach", "telepathy"},
                                        {"shima_collective", "automatic"},
                                        {"shima_collective", "subgroups"},
                                        {"shima_subgroup", "0"},
                                        {"shima_subgroup", "-2"},
                                        {"shima_subgroup", "four"},
                                        {"shima_subgroup", "4x"},
                                        {"shima_subgroup", ""},
                                        {"shima_subgroup", "automatic"},
                                        {"shima_subgroup", "2147483648"}};
  for (const auto& [key, value] : bad) {
    Hints hints;
    const auto result = apply(hints, key, value);
    ASSERT_FALSE(result.has_value()) << key << "=" << value;
    EXPECT_EQ(result.error().code, Code::bad_argument);
    EXPECT_NE(result.error().what.find(key), std::string::npos);
    EXPECT_NE(result.error().what.find("must be"), std::string::npos);
    EXPECT_NE(result.error().what.find("for example"), std::string::npos);
    EXPECT_EQ(hints, Hints{});
  }
}

// Without subgroups each rank is one of its own, so "off" and "1" are the same value.
TEST(Hints, SubgroupsAreAutoOffOrANumber) {
  EXPECT_EQ(value_of(Hints{}, "shima_subgroup"), "auto");
  const std::vector<std::pair<HintSetting, int>> good = {{{"off", "1"}, 1},
                                                         {{"1", "1"}, 1},
                                                         {{"4", "4"}, 4},
                                                         {{"2147483647", "2147483647"}, 2147483647},
                                                         {{"auto", "auto"}, 0}};
  for (const auto& [texts, ranks] : good) {
    Hints hints;
    hints.shima_subgroup = 3;
    ASSERT_TRUE(apply(hints, "shima_subgroup", texts.first).has_value()) << texts.first;
    EXPECT_EQ(hints.shima_subgroup, ranks) << texts.first;
    EXPECT_EQ(value_of(hints, "shima_subgroup"), texts.second) << texts.first;
    EXPECT_EQ(resolve(Hints{}, effective(hints), {}), hints) << texts.first;
  }
}

TEST(Hints, CollectiveBufferingSumsUpBothDirections) {
  Hints hints;
  EXPECT_EQ(value_of(hints, "collective_buffering"), "(not set)");
  EXPECT_TRUE(*apply(hints, "collective_buffering", "false"));
  EXPECT_EQ(hints.romio_cb_write, Toggle::disable);
  EXPECT_EQ(hints.romio_cb_read, Toggle::disable);
  EXPECT_EQ(value_of(hints, "collective_buffering"), "false");
}

TEST(Hints, EffectiveCanBeAppliedAgain) {
  Hints hints;
  hints.cb_nodes = 5;
  hints.striping_unit = 1 << 20;
  hints.romio_cb_read = Toggle::enable;
  hints.romio_cb_write = Toggle::enable;
  hints.file_perm = 0600;
  hints.start_iodevice = 2;
  hints.shima_reach = Path::message;
  hints.shima_collective = Strategy::independent;
  hints.shima_requests = RequestsTo::touched;
  EXPECT_EQ(resolve(Hints{}, effective(hints), {}), hints);
  EXPECT_EQ(resolve(Hints{}, effective(Hints{}), {}), Hints{});
  hints.romio_cb_write = Toggle::disable;
  EXPECT_EQ(resolve(Hints{}, effective(hints), {}), hints);
}

TEST(Hints, DataSievingWritesStayOff) {
  Hints hints;
  EXPECT_TRUE(*apply(hints, "romio_ds_write", "enable"));
  EXPECT_EQ(value_of(hints, "romio_ds_write"), "disable");
}

TEST(HintSources, Lists) {
  const std::vector<HintSetting> expected = {{"a", "1"}, {"b", "x=y"}, {"c", ""}};
  EXPECT_EQ(parse_hint_list(" a = 1 ;;b=x=y; c"), expected);
  EXPECT_TRUE(parse_hint_list("").empty());
}

TEST(HintSources, Files) {
  const std::vector<HintSetting> expected = {{"cb_nodes", "4"}, {"romio_cb_read", "enable"}};
  EXPECT_EQ(parse_hint_file("# all\n\ncb_nodes 4 # four\r\n  romio_cb_read\tenable\n"), expected);
}

// ROMIO skips later lines; its test syshints.c requires that.
TEST(HintSources, TheFirstLineOfAKeyCounts) {
  const std::vector<HintSetting> expected = {{"ind_rd_buffer_size", "49"}, {"cb_nodes", "4"}};
  EXPECT_EQ(parse_hint_file("ind_rd_buffer_size 49\ncb_nodes 4\nind_rd_buffer_size 60\n"),
            expected);
}

TEST(HintSources, TheStrongerSourceWins) {
  const std::vector<HintSetting> program = {
      {"cb_nodes", "2"}, {"cb_buffer_size", "1M"}, {"romio_cb_read", "maybe"}};
  const std::vector<HintSetting> environment = {{"cb_nodes", "7"}};
  const Hints hints = resolve(Hints{}, program, environment);
  EXPECT_EQ(hints.cb_nodes, 7);
  EXPECT_EQ(hints.cb_buffer_size, std::uint64_t{1} << 20);
  EXPECT_EQ(hints.romio_cb_read, Toggle::automatic);
}

}  // namespace
}  // namespace shima
