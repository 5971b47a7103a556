// TIMEOUT: 300
// Collective transfers of random patterns against a byte-array model, by every strategy and path.
//
// Written values are a function of the file offset, so overlapping writes do not matter; the file
// is filled with a background first, so that a changed byte outside all requests is detected.
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
namespace {

using Random = std::mt19937_64;

std::uint64_t pick(Random& random, std::uint64_t low, std::uint64_t high) {
  return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
}

std::byte value_at(std::int64_t offset) {
  return static_cast<std::byte>((static_cast<std::uint64_t>(offset) * 0x9e3779b97f4a7c15U) >> 56 |
                                1);
}
constexpr auto background = std::byte{0};

// An ordered list of so many pieces that its description is in a message's lasting part.
Pattern random_list(Random& random, std::uint64_t unit) {
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
Pattern random_tile(Random& random, int depth = 2) {
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

Access random_access(Random& random) {
  Access access;
  const Pattern tile = random_tile(random);
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
};

Transfer transfer_of(Access& access) {
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
    auto file = File::open(std::move(channel), request);
    EXPECT_TRUE(file.has_value());
    return *std::move(file);
  }

  void check_write(Random& random, const Scenario& scenario);
  void check_read(Random& random, const Scenario& scenario);

  std::filesystem::path directory_;
  std::string path_;
  std::vector<StripedRegion> regions_;
};

void CollectiveTest::check_write(Random& random, const Scenario& scenario) {
  std::vector<Access> accesses;
  for (int i = 0; i < scenario.world.members; ++i) accesses.push_back(random_access(random));
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

void CollectiveTest::check_read(Random& random, const Scenario& scenario) {
  std::vector<Access> accesses;
  for (int i = 0; i < scenario.world.members; ++i) accesses.push_back(random_access(random));
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

std::uint64_t first_seed() {
  const char* wanted = std::getenv("SHIMA_SEED");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 20260101;
}

int rounds() {
  const char* wanted = std::getenv("SHIMA_ROUNDS");
  return wanted != nullptr ? std::atoi(wanted) : 10;
}

// Some stripes are smaller than a piece, some larger than a window.
std::vector<StripedRegion> random_regions(Random& random) {
  std::vector<StripedRegion> regions;
  std::int64_t begin = 0;
  for (std::uint64_t i = pick(random, 1, 3); i > 0; --i) {
    const std::uint64_t unit = std::array<std::uint64_t, 5>{
        pick(random, 0, 9) == 0 ? 7U : 512U, 300, 1000, 4096, 65536}[pick(random, 0, 4)];
    regions.push_back({{begin}, unit, std::vector<std::string>(pick(random, 1, 5), "beside")});
    begin += static_cast<std::int64_t>(pick(random, 1, 60000));
  }
  return regions;
}

struct Way {
  const char* name;
  std::optional<Path> path;
  int nodes;
  bool can_pull_across;
  bool collective;
  bool striped;
  bool one_space = false;
  std::optional<Strategy> strategy = {};
};

class EveryWay : public CollectiveTest, public testing::WithParamInterface<Way> {
 protected:
  Scenario scenario(Random& random) {
    const Way& way = GetParam();
    Scenario made;
    made.world.members = static_cast<int>(
        pick(random, static_cast<std::uint64_t>(way.nodes), std::max<std::uint64_t>(8, way.nodes)));
    made.world.cores = static_cast<int>(pick(random, 1, 4));
    made.world.nodes = way.nodes;
    made.world.can_pull_across = way.can_pull_across;
    made.world.one_space = way.one_space;
    made.path = way.path;
    made.strategy = way.strategy;
    made.collective = way.collective;
    made.window_bytes = pick(random, 0, 1) * 4096 * pick(random, 1, 8);
    made.subgroup_members = static_cast<int>(pick(random, 0, 3));
    made.requests = pick(random, 0, 1) == 0 ? RequestsTo::all : RequestsTo::touched;
    made.world.placement =
        pick(random, 0, 1) == 0 ? test::Placement::blocks : test::Placement::round_robin;
    regions_.clear();
    if (way.striped) regions_ = random_regions(random);
    return made;
  }
};

TEST_P(EveryWay, WritesWhatTheModelSays) {
  for (int round = 0; round < rounds(); ++round) {
    const std::uint64_t seed = first_seed() + static_cast<std::uint64_t>(round);
    SCOPED_TRACE("SHIMA_SEED=" + std::to_string(seed));
    Random random(seed);
    check_write(random, scenario(random));
    if (HasFatalFailure()) return;
  }
}

TEST_P(EveryWay, ReadsWhatTheModelSays) {
  for (int round = 0; round < rounds(); ++round) {
    const std::uint64_t seed = first_seed() + static_cast<std::uint64_t>(round);
    SCOPED_TRACE("SHIMA_SEED=" + std::to_string(seed));
    Random random(seed);
    check_read(random, scenario(random));
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, EveryWay,
    testing::Values(Way{"independent", std::nullopt, 1, true, false, false},
                    Way{"automatic", std::nullopt, 1, true, true, false},
                    Way{"pull", Path::pull, 1, true, true, false},
                    Way{"pack", Path::pack, 1, true, true, false},
                    Way{"message", Path::message, 2, false, true, false},
                    Way{"message_and_pull", Path::message, 3, true, true, false},
                    Way{"message_on_many_nodes", Path::message, 11, true, true, false},
                    Way{"independent_on_nodes", std::nullopt, 3, true, false, false},
                    Way{"independent_striped", std::nullopt, 1, true, false, true},
                    Way{"automatic_striped", std::nullopt, 1, true, true, true},
                    Way{"pull_striped", Path::pull, 1, true, true, true},
                    Way{"pack_striped", Path::pack, 1, true, true, true},
                    Way{"message_striped", Path::message, 2, false, true, true},
                    Way{"message_and_pull_striped", Path::message, 3, true, true, true},
                    Way{"one_space", std::nullopt, 1, true, true, false, true},
                    Way{"single_copy", Path::single_copy, 1, true, true, false, true},
                    Way{"pull_in_one_space", Path::pull, 1, true, true, false, true},
                    Way{"combined_in_one_space", std::nullopt, 1, true, false, false, true},
                    Way{"message_in_one_space", Path::message, 3, true, true, true, true},
                    Way{"single_copy_striped", Path::single_copy, 1, true, true, true, true}),
    [](const auto& way) { return std::string(way.param.name); });

Way by(const char* name, Strategy strategy, int nodes, bool striped) {
  return {name, std::nullopt, nodes, true, true, striped, false, strategy};
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, EveryWay,
    testing::Values(by("independent", Strategy::independent, 1, false),
                    by("independent_on_nodes", Strategy::independent, 2, true),
                    by("disk_directed_on_nodes", Strategy::disk_directed, 3, true),
                    by("two_phase", Strategy::two_phase, 1, false),
                    by("two_phase_striped", Strategy::two_phase, 1, true),
                    by("two_phase_on_nodes", Strategy::two_phase, 3, false),
                    by("two_phase_on_nodes_striped", Strategy::two_phase, 3, true),
                    by("subgroup_on_nodes", Strategy::subgroup, 3, false),
                    by("subgroup_on_nodes_striped", Strategy::subgroup, 3, true)),
    [](const auto& way) { return std::string(way.param.name); });

}  // namespace
}  // namespace shima
