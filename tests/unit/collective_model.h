// Collective transfers of random patterns against a byte-array model.
//
// Written values are a function of the file offset, so overlapping writes do not matter; the file
// is filled with a background first, so that a changed byte outside all requests is detected.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "file/file.h"
#include "members.h"
#include "pattern/cursor.h"
#include "store/striped/logical_file.h"
#include "store/striped/master_store.h"

namespace shima {

using Random = std::mt19937_64;

inline std::uint64_t pick(Random& random, std::uint64_t low, std::uint64_t high) {
  return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
}

inline std::byte value_at(std::int64_t offset) {
  return static_cast<std::byte>((static_cast<std::uint64_t>(offset) * 0x9e3779b97f4a7c15U) >> 56 |
                                1);
}
inline constexpr auto background = std::byte{0};

// An ordered list of so many pieces that its description is in a message's lasting part.
inline Pattern random_list(Random& random, std::uint64_t unit) {
  std::vector<std::int64_t> offsets;
  std::vector<std::uint64_t> lens;
  std::int64_t at = 0;
  for (std::uint64_t i = pick(random, 100, 400); i > 0; --i) {
    at += static_cast<std::int64_t>(unit * pick(random, 0, 3));
    offsets.push_back(at);
    lens.push_back(unit * pick(random, 1, 4));
    at += static_cast<std::int64_t>(lens.back());
  }
  return Pattern::list(offsets, lens);
}

// An ordered tile: pieces with gaps, regular or not, at most some KiB long.
inline Pattern random_tile(Random& random, int depth = 2) {
  const std::uint64_t unit = std::array<std::uint64_t, 4>{1, 4, 8, 64}[pick(random, 0, 3)];
  if (depth == 2 && pick(random, 0, 4) == 0) return random_list(random, unit);
  if (depth == 0 || pick(random, 0, 3) == 0) return Pattern::contiguous(unit * pick(random, 1, 40));
  const Pattern child = random_tile(random, depth - 1);
  const auto span = child.highest() - child.lowest();
  if (pick(random, 0, 1) == 0) {
    const auto gap = static_cast<std::int64_t>(unit * pick(random, 0, 30));
    return Pattern::strided(pick(random, 1, 6), span + gap, child);
  }
  std::vector<Pattern> children;
  std::int64_t at = 0;
  for (std::uint64_t i = pick(random, 1, 5); i > 0; --i) {
    at += static_cast<std::int64_t>(unit * pick(random, 0, 20));
    children.push_back(child.shifted(at - child.lowest()));
    at += span;
  }
  return Pattern::indexed(std::move(children));
}

struct Access {
  Slice file;
  Slice memory;  // relative to the start of `buffer`
  std::vector<std::byte> buffer;
};

// `large`: in pieces that are moved from where they are in a message (large_run_bytes).
inline Access random_access(Random& random, bool large) {
  Access access;
  const Pattern tile = large ? Pattern::contiguous(pick(random, 4096, 20000)) : random_tile(random);
  const auto extent = tile.highest() + static_cast<std::int64_t>(pick(random, 0, 2000));
  access.file = {Pattern::tiled(tile, extent), static_cast<std::int64_t>(pick(random, 0, 5000)),
                 pick(random, 0, 300), pick(random, 0, 9) == 0 ? 0 : pick(random, 1, 60000)};
  const std::uint64_t len = access.file.len_bytes;
  const Pattern element = pick(random, 0, 1) == 0 ? Pattern::contiguous(8) : random_tile(random);
  const auto step =
      element.highest() + static_cast<std::int64_t>(pick(random, 0, 1) * pick(random, 0, 100));
  const Pattern memory = Pattern::strided(len / element.len_bytes() + 1, step, element);
  access.memory = {memory, 0, 0, len};
  access.buffer.resize(static_cast<std::size_t>(memory.highest()), std::byte{0xAA});
  return access;
}

// Calls visit(file offset, memory offset) for every data byte.
template <class Visit>
void each_byte(const Access& access, Visit visit) {
  Cursor file(access.file);
  Cursor memory(access.memory);
  for (; !file.done(); file.advance(1), memory.advance(1))
    visit(file.strip().offset, memory.strip().offset);
}

struct Scenario {
  test::World world;
  std::optional<Path> path;
  std::optional<Strategy> strategy;
  bool collective = true;
  std::uint64_t window_bytes = 0;
  int subgroup_members = 0;  // of a subgroup; 0: all of a node
  std::optional<RequestsTo> requests;
  bool large_pieces = false;  // of members' files
};

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
  std::vector<Access> accesses;
  for (int i = 0; i < scenario.world.members; ++i)
    accesses.push_back(random_access(random, scenario.large_pieces));
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
  std::vector<Access> accesses;
  for (int i = 0; i < scenario.world.members; ++i)
    accesses.push_back(random_access(random, scenario.large_pieces));
  std::vector<std::byte> bytes(pick(random, 0, 300000));
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
