// Counters add up, appear in the statistics file under their names, and lead to advice.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "observe/stats.h"

namespace shima {
namespace {

TEST(Counters, EveryFieldIsInTheTableOnce) {
  static_assert(sizeof(Counters) ==
                counter_fields.size() * sizeof(std::uint64_t) + sizeof(Counters::decided));
  std::set<std::string_view> names;
  Counters counters;
  for (const CounterField& field : counter_fields) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_EQ(++(counters.*field.value), 1U) << field.name << " is another field's";
  }
}

TEST(Counters, AddUpFieldByField) {
  Counters sum;
  Counters more;
  std::uint64_t value = 1;
  for (const CounterField& field : counter_fields) more.*field.value = value++;
  sum.add(more);
  sum.add(more);
  value = 1;
  for (const CounterField& field : counter_fields)
    EXPECT_EQ(sum.*field.value, 2 * value++) << field.name;
}

TEST(Counters, ReasonsAddUp) {
  Counters sum;
  Counters more;
  more.decided[15] = 4;
  sum.add(more);
  sum.add(more);
  EXPECT_EQ(sum.decided[15], 8U);
}

class StatsFile : public testing::Test {
 protected:
  void SetUp() override { setenv("SHIMA_STATS", path_.c_str(), 1); }
  void TearDown() override {
    unsetenv("SHIMA_STATS");
    std::filesystem::remove(path_);
  }
  std::string path_ =
      (std::filesystem::temp_directory_path() / ("shima_stats_" + std::to_string(::getpid())))
          .string();
};

TEST_F(StatsFile, HoldsALineOfJsonPerFile) {
  FileStats stats{"/data/\"odd\"\n\xff name", 3, {}, {{"cb_nodes", "2"}}};
  stats.sum.path_pull = 7;
  stats.sum.disk_ns = 5'000'000;
  stats.sum.file_pieces = 100;
  stats.sum.decided[1] = 12;
  stats.reasons = {"first", "second"};
  stats.subfiles = {{"a", {.writes = 3, .bytes_written = 800}}, {"b", {.reads = 1}}};
  append_stats(stats);
  append_stats(stats);
  std::ifstream file(path_);
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json["comm_size"], 3);
    EXPECT_EQ(json["counters"]["path_pull"], 7);
    EXPECT_EQ(json["counters"]["path_pack"], 0);
    EXPECT_EQ(json["times_us"]["disk"], 5000);
    EXPECT_EQ(json["hints"]["cb_nodes"], "2");
    EXPECT_EQ(json["decided"], (nlohmann::json{{"second", 12}}));
    EXPECT_EQ(json["counters"]["pieces_merged"], 96);
    EXPECT_EQ(json["subfiles"][0]["target"], "a");
    EXPECT_EQ(json["subfiles"][0]["bytes_written"], 800);
    EXPECT_EQ(json["subfiles"][1]["reads"], 1);
  }
  EXPECT_EQ(lines, 2);
}

TEST_F(StatsFile, IsOnlyWantedWhereItIsNamed) {
  EXPECT_TRUE(stats_wanted());
  setenv("SHIMA_STATS", "", 1);
  EXPECT_FALSE(stats_wanted());
  append_stats({});
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST(Advice, ManySmallIndependentCallsShouldBeOneCollective) {
  FileStats stats;
  stats.sum.writes = 100000;
  stats.sum.bytes_written = 100000 * 16384ULL;
  const auto advice = advice_for(stats);
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_NE(advice.front().find("16384 bytes"), std::string::npos) << advice.front();
  EXPECT_NE(advice.front().find("MPI_File_write_all"), std::string::npos) << advice.front();
}

TEST(Advice, IsNotGivenWhereThereIsNothingToGain) {
  FileStats stats;
  EXPECT_TRUE(advice_for(stats).empty());
  stats.sum.writes = 100000;
  stats.sum.bytes_written = 100000 * (1ULL << 20);  // large writes
  EXPECT_TRUE(advice_for(stats).empty());
  stats.sum.bytes_written = 100000;
  stats.sum.collective_writes = 1;  // the program uses collective writes already
  EXPECT_TRUE(advice_for(stats).empty());
  stats.sum = {};
  stats.sum.reads = 10;  // too few
  stats.sum.bytes_read = 100;
  EXPECT_TRUE(advice_for(stats).empty());
}

}  // namespace
}  // namespace shima
