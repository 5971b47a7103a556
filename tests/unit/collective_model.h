// Collective transfers of random accesses against a byte-array model.
//
// Written values are a function of the file offset, so overlapping writes do not matter; the file
// is filled with a background first, so that a changed byte outside all requests is detected.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "collective_access.h"
#include "file/file.h"
#include "members.h"
#include "store/striped/logical_file.h"
#include "store/striped/master_store.h"

namespace shima {

inline constexpr auto background = std::byte{0};

struct Scenario {
  test::World world;
  std::optional<Path> path;
  std::optional<Strategy> strategy;
  bool collective = true;
  std::uint64_t window_bytes = 0;
  int subgroup_members = 0;  // of a subgroup; 0: all of a node
  std::optional<RequestsTo> requests;
  bool large_pieces = false;  // of members' files
  bool disordered = false;    // a member's pieces are in any order in the file, and overlap
};

inline std::vector<Access> random_accesses(Random& random, const Scenario& scenario) {
  std::vector<Access> accesses;
  for (int i = 0; i < scenario.world.members; ++i)
    accesses.push_back(random_access(random, scenario.large_pieces));
  if (scenario.disordered)
    accesses[pick(random, 0, accesses.size() - 1)] = disordered_access(random);
  return accesses;
}

inline Transfer transfer_of(Access& access) {
  Transfer transfer{access.file, access.memory};
  transfer.memory.base =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(access.buffer.data()));
  return transfer;
}

class CollectiveTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::temp_directory_path() / ("shima_collective_" + std::to_string(::getpid()));
    std::filesystem::create_directory(directory_);
    path_ = (directory_ / "file").string();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void write_background(std::size_t size) { put(std::vector<std::byte>(size, background)); }
  // As a plain file, or striped over as many subfiles and regions as regions_ says.
  void put(const std::vector<std::byte>& bytes) {
    if (std::filesystem::exists(path_)) {
      ASSERT_TRUE(remove_file(path_).has_value());
    }
    if (!regions_.empty()) {
      ASSERT_TRUE(create_striped({path_, regions_}).has_value());
    }
    auto file = LogicalFile::open({.path = path_, .write = true, .create = true});
    ASSERT_TRUE(file.has_value()) << describe(file.error());
    ASSERT_TRUE(file->write(FileOffset{0}, bytes.data(), bytes.size()).has_value());
  }
  std::vector<std::byte> contents() {
    auto file = LogicalFile::open({.path = path_, .read = true});
    std::vector<std::byte> bytes(static_cast<std::size_t>(file->size().value().value));
    EXPECT_EQ(file->read(FileOffset{0}, bytes.data(), bytes.size()).value(), bytes.size());
    return bytes;
  }

  std::unique_ptr<File> open(std::unique_ptr<Channel> channel, const Scenario& scenario) {
    OpenRequest request{.path = path_, .mode = {.read = true, .write = true}, .hints = {}};
    request.hints.shima_collective = scenario.strategy;
    request.hints.shima_reach = scenario.path;
    request.hints.cb_buffer_size = scenario.window_bytes;
    request.hints.shima_subgroup = scenario.subgroup_members;
    request.hints.shima_requests = scenario.requests;
    const auto nothing_more = [](File&) { return Status{}; };
    auto file = File::open(std::move(channel), request, nothing_more);
    EXPECT_TRUE(file.has_value());
    return *std::move(file);
  }

  void check_write(Random& random, const Scenario& scenario);
  void check_read(Random& random, const Scenario& scenario);

  std::filesystem::path directory_;
  std::string path_;
  std::vector<StripedRegion> regions_;
};

inline void CollectiveTest::check_write(Random& random, const Scenario& scenario) {
  std::vector<Access> accesses = random_accesses(random, scenario);
  std::vector<std::byte> expected(pick(random, 0, 20000), background);
  write_background(expected.size());
  for (Access& access : accesses) {
    each_byte(access, [&](std::int64_t file, std::int64_t memory) {
      if (static_cast<std::size_t>(file) >= expected.size())
        expected.resize(static_cast<std::size_t>(file) + 1);
      expected[static_cast<std::size_t>(file)] = access.buffer[static_cast<std::size_t>(memory)] =
          value_at(file);
    });
  }
  test::run_members(scenario.world, [&](std::unique_ptr<Channel> channel) {
    Access& mine = accesses[static_cast<std::size_t>(channel->rank())];
    const auto file = open(std::move(channel), scenario);
    // The second call uses what is known of the patterns from the first, which writes other bytes.
    for (int call = 0; call < 2; ++call) {
      for (std::byte& byte : mine.buffer) byte = ~byte;
      const auto moved =
          scenario.collective ? file->write_all(transfer_of(mine)) : file->write(transfer_of(mine));
      ASSERT_TRUE(moved.has_value()) << describe(moved.error());
      EXPECT_EQ(*moved, mine.file.len_bytes);
      ASSERT_TRUE(scenario.collective || file->sync().has_value());
    }
    EXPECT_TRUE(file->close().has_value());
  });
  const auto found = contents();
  std::size_t at = 0;
  while (at < found.size() && at < expected.size() && found[at] == expected[at]) ++at;
  ASSERT_TRUE(found == expected) << "sizes " << found.size() << " and " << expected.size()
                                 << "; first difference at " << at;
}

inline void CollectiveTest::check_read(Random& random, const Scenario& scenario) {
  std::vector<Access> accesses = random_accesses(random, scenario);
  // What is read of disordered pieces beyond the end of the file is not defined.
  std::size_t least_bytes = 0;
  for (const Access& access : accesses)
    if (!access.file.pattern.ordered())
      least_bytes = static_cast<std::size_t>(bounds_of(access.file).highest);
  std::vector<std::byte> bytes(std::max<std::size_t>(least_bytes, pick(random, 0, 300000)));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = value_at(static_cast<std::int64_t>(i));
  put(bytes);
  test::run_members(scenario.world, [&](std::unique_ptr<Channel> channel) {
    Access& mine = accesses[static_cast<std::size_t>(channel->rank())];
    std::vector<std::byte> expected = mine.buffer;
    std::uint64_t present = 0;
    each_byte(mine, [&](std::int64_t file_offset, std::int64_t memory) {
      if (static_cast<std::size_t>(file_offset) >= bytes.size()) return;
      expected[static_cast<std::size_t>(memory)] = value_at(file_offset);
      ++present;
    });
    const auto file = open(std::move(channel), scenario);
    const auto moved =
        scenario.collective ? file->read_all(transfer_of(mine)) : file->read(transfer_of(mine));
    ASSERT_TRUE(moved.has_value()) << describe(moved.error());
    EXPECT_EQ(*moved, present);
    EXPECT_TRUE(mine.buffer == expected);
    EXPECT_TRUE(file->close().has_value());
  });
}

inline std::uint64_t first_seed() {
  const char* wanted = std::getenv("SHIMA_SEED");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 20260101;
}

inline int rounds() {
  const char* wanted = std::getenv("SHIMA_ROUNDS");
  return wanted != nullptr ? std::atoi(wanted) : 10;
}

// Some stripes are smaller than a piece, some larger than a window.
inline std::vector<StripedRegion> random_regions(Random& random,
                                                 const std::vector<std::string>& targets) {
  std::vector<StripedRegion> regions;
  std::int64_t begin = 0;
  for (std::uint64_t i = pick(random, 1, 3); i > 0; --i) {
    const std::uint64_t unit = std::array<std::uint64_t, 5>{
        pick(random, 0, 9) == 0 ? 7U : 512U, 300, 1000, 4096, 65536}[pick(random, 0, 4)];
    std::vector<std::string> names;
    for (std::uint64_t count = pick(random, 1, 5); names.size() < count;)
      names.push_back(targets[names.size() % targets.size()]);
    regions.push_back({{begin}, unit, names});
    begin += static_cast<std::int64_t>(pick(random, 1, 60000));
  }
  return regions;
}

}  // namespace shima
