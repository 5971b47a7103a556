// TIMEOUT: 300
// Collective transfers that two I/O nodes in this process direct, against the model, by members on
// one to four nodes; how a call ends if one that takes part leaves, or does not keep the rules.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <fstream>

#include "collective/plan/plan.h"
#include "collective_model.h"
#include "directed_by_hand.h"
#include "iod/daemon.h"

namespace shima {
namespace {

class IoNodes : public CollectiveTest {
 protected:
  void SetUp() override {
    CollectiveTest::SetUp();
    const std::string key = (directory_ / "key").string();
    std::ofstream(key) << "0123456789abcdef0123456789abcdef\n";
    ::chmod(key.c_str(), 0600);
    ::setenv("SHIMA_IOD_KEY", key.c_str(), 1);
    std::string list;
    for (const char* name : {"a", "b"}) {
      const std::string target = (directory_ / name).string();
      std::filesystem::create_directory(target);
      iod::DaemonOptions options;
      options.listen = {"127.0.0.1", "0"};
      options.targets = {{name, target}};
      options.key_file = key;
      auto started = iod::Daemon::start(std::move(options));
      ASSERT_TRUE(started.has_value()) << describe(started.error());
      list += std::string(list.empty() ? "" : ":") + name +
              "=iod://127.0.0.1:" + (*started)->address().port + "/" + name;
      nodes_.push_back(*std::move(started));
    }
    ::setenv("SHIMA_TARGETS", list.c_str(), 1);
  }
  void TearDown() override {
    nodes_.clear();
    ::unsetenv("SHIMA_TARGETS");
    CollectiveTest::TearDown();
  }

  [[nodiscard]] bool have_directed() {
    return std::ranges::all_of(nodes_, [](const auto& node) {
      const std::string status = node->status();
      const std::size_t target = status.find("target ");
      return status.substr(target, status.find('\n', target) - target)
                 .find(", 0 collective calls") == std::string::npos;
    });
  }

  std::vector<std::unique_ptr<iod::Daemon>> nodes_;
};

class IoNodeCollective : public IoNodes, public testing::WithParamInterface<int> {
 protected:
  Scenario scenario(Random& random) {
    Scenario made;
    made.world.nodes = GetParam();
    made.world.members = static_cast<int>(pick(random, std::max(GetParam(), 2), 8));
    made.world.cores = static_cast<int>(pick(random, 1, 4));
    made.world.can_pull_across = pick(random, 0, 1) == 0;
    made.world.placement = static_cast<test::Placement>(pick(random, 0, 2));
    made.strategy = Strategy::io_node;
    made.window_bytes = pick(random, 0, 1) * 4096 * pick(random, 1, 8);
    made.subgroup_members = static_cast<int>(pick(random, 0, 3));
    regions_ = random_regions(random, {"a", "b"});
    return made;
  }
  // `make_scenario(random)`: of a write or a read.
  template <class MakeScenario>
  void check(MakeScenario make_scenario) {
    for (int round = 0; round < rounds() / 3 + 1; ++round) {
      const std::uint64_t seed = first_seed() + static_cast<std::uint64_t>(round);
      SCOPED_TRACE("SHIMA_SEED=" + std::to_string(seed));
      Random random(seed);
      check_write(random, make_scenario(random));
      if (HasFailure()) return;
      check_read(random, make_scenario(random));
      if (HasFailure()) return;
    }
    EXPECT_TRUE(have_directed());
  }
};

TEST_P(IoNodeCollective, WritesAndReadsWhatTheModelSays) {
  check([this](Random& random) { return scenario(random); });
}

// The pieces are moved from where they are in messages.
TEST_P(IoNodeCollective, MovesLargePieces) {
  check([this](Random& random) {
    Scenario made = scenario(random);
    made.world.can_pull_across = true;
    made.path = Path::pull;
    made.large_pieces = true;
    return made;
  });
}

INSTANTIATE_TEST_SUITE_P(Nodes, IoNodeCollective, testing::Values(1, 2, 3, 4));

// Two processes that take part in a call, by hand.
class IoNodeCalls : public IoNodes {
 protected:
  void SetUp() override {
    IoNodes::SetUp();
    regions_ = {{{0}, 4096, {"a"}}};
    begin_with(std::vector<std::byte>(8192, std::byte{1}));
  }
  void TearDown() override {
    files_.clear();
    IoNodes::TearDown();
  }

  void begin_with(const std::vector<std::byte>& bytes) {
    files_.clear();
    put(bytes);
    for (int i = 0; i < 2; ++i)
      files_.push_back(LogicalFile::open({.path = path_, .read = true, .write = true}).value());
  }

  static DirectedCall call(std::uint64_t id, std::uint32_t participants) {
    return {.id = id,
            .participants = participants,
            .writes = 1,
            .window_bytes = 4096,
            .granule_bytes = 1024,
            .range = {{0}, {8192}}};
  }
  static void request(DirectedPart& part, WindowId first) {
    by_hand::request(part.stream(), first);
  }
  // Sends `value` as the granules of the window, once it is granted.
  static void send_window(DirectedPart& part, WindowId window, std::byte value) {
    wait_for(part, Lane::grant, sizeof(WindowGrant));
    MessageBuffer message(sizeof(WindowHead) + 2 * sizeof(std::uint64_t) + 4096);
    std::span<std::byte> out = message.bytes();
    put_into(out, WindowHead{window, {}});
    put_into(out, std::uint64_t{0});  // a word of bits follows
    put_into(out, std::uint64_t{0b1111});
    std::ranges::fill(out, value);
    part.stream().send(static_cast<std::uint32_t>(Lane::to_agent), std::move(message));
  }
  // Asks for all granules of the window, once it is granted.
  static void ask_for_window(DirectedPart& part, WindowId window, std::uint64_t granules) {
    by_hand::send_run(part.stream(), {window, {}}, granules, 0, {});
  }
  static void wait_for(DirectedPart& part, Lane lane, std::size_t most_bytes) {
    std::ignore = by_hand::wait_for(part.stream(), lane, most_bytes);
  }
  static Code end_of(DirectedPart& part) { return by_hand::end_of(part.stream()); }

  std::vector<LogicalFile> files_;
};

TEST_F(IoNodeCalls, EndForAllIfOneLeaves) {
  auto stays = files_[0].join(0, call(1, 2)).value();
  request(*stays, {});
  {
    const auto leaves = files_[1].join(0, call(1, 2)).value();
    request(*leaves, {.number = 1});
    wait_for(*leaves, Lane::grant, sizeof(WindowGrant));
  }
  EXPECT_EQ(end_of(*stays), Code::cancelled);
}

TEST_F(IoNodeCalls, EndIfOneLeavesBeforeTheyBegin) {
  auto stays = files_[0].join(0, call(1, 3)).value();
  std::ignore = files_[1].join(0, call(1, 3)).value();
  EXPECT_EQ(end_of(*stays), Code::cancelled);
}

TEST_F(IoNodeCalls, EndIfOneHasLeftBeforeAnotherJoins) {
  const auto connections = [&] {
    const std::string status = nodes_[0]->status();
    const std::string text = status.substr(0, status.find(" connections"));
    return text.substr(text.rfind(' '));
  };
  std::string with_both;
  {
    const auto leaves = files_[1].join(0, call(1, 2)).value();
    with_both = connections();
  }
  while (connections() == with_both) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto comes = files_[0].join(0, call(1, 2)).value();
  EXPECT_EQ(end_of(*comes), Code::cancelled);
}

TEST_F(IoNodeCalls, AreServedAfterOthersHaveFailed) {
  std::ignore = files_[0].join(0, call(1, 2)).value();
  std::vector<std::unique_ptr<DirectedPart>> parts;
  for (auto& file : files_) parts.push_back(file.join(0, call(2, 2)).value());
  for (int i = 0; i < 2; ++i) request(*parts[static_cast<std::size_t>(i)], {.number = i});
  send_window(*parts[0], {.number = 0}, std::byte{5});
  send_window(*parts[1], {.number = 1}, std::byte{6});
  for (auto& part : parts) {
    EXPECT_EQ(end_of(*part), Code::ok);
    part->end();
  }
  std::vector<std::byte> expected(8192, std::byte{5});
  std::fill(expected.begin() + 4096, expected.end(), std::byte{6});
  EXPECT_EQ(contents(), expected);
}

// What it has not read when the call fails was to be sent from the agent's windows, which are gone.
TEST_F(IoNodeCalls, EndForOneThatReadsItsReplyLate) {
  constexpr std::uint64_t window_bytes = most_io_node_window_bytes;
  begin_with(std::vector<std::byte>(2 * window_bytes, std::byte{7}));
  DirectedCall reads = call(1, 2);
  reads.writes = 0;
  reads.window_bytes = window_bytes;
  reads.granule_bytes = 4096;
  reads.range.end.value = as_signed(2 * window_bytes);
  const auto stays = files_[0].join(0, reads).value();
  request(*stays, {.number = 0});
  {
    const auto leaves = files_[1].join(0, reads).value();
    request(*leaves, {.number = 1});
    ask_for_window(*stays, {.number = 0}, window_bytes / reads.granule_bytes);
    std::byte next{};  // of the reply
    ASSERT_EQ(::recv(stays->stream().socket(), &next, 1, MSG_PEEK), 1);
  }
  const std::uint64_t reply = stays->stream().expect(
      static_cast<std::uint32_t>(Lane::reply), MessageBuffer(sizeof(ReplyHead) + window_bytes));
  EXPECT_EQ(end_of(*stays), Code::cancelled);
  const auto whole = stays->stream().take(static_cast<std::uint32_t>(Lane::reply), reply);
  ASSERT_TRUE(whole.has_value());
  EXPECT_TRUE(std::ranges::all_of(whole->bytes().subspan(sizeof(ReplyHead)),
                                  [](std::byte one) { return one == std::byte{7}; }));
}

TEST_F(IoNodeCalls, EndIfAMessageIsNoWindow) {
  std::vector<std::unique_ptr<DirectedPart>> parts;
  for (auto& file : files_) parts.push_back(file.join(0, call(1, 2)).value());
  request(*parts[0], {.number = 7});  // beyond the range
  request(*parts[1], {});
  EXPECT_NE(end_of(*parts[0]), Code::ok);
  EXPECT_NE(end_of(*parts[1]), Code::ok);
}

TEST_F(IoNodeCalls, NeedAFileOpenForThem) {
  auto reads = LogicalFile::open({.path = path_, .read = true}).value();
  const auto part = reads.join(0, call(1, 1)).value();
  while (part->stream().status()) {
    part->stream().progress();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(contents(), std::vector<std::byte>(8192, std::byte{1}));
}

}  // namespace
}  // namespace shima
