// The meetings of members on one node and on several: joined values, common errors, dead members.
#include "group/node_channel.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <string>

#include "group/agreement.h"
#include "group/outcome_words.h"
#include "members.h"

namespace shima {
namespace {

using Random = std::mt19937_64;

std::uint64_t pick(Random& random, std::uint64_t low, std::uint64_t high) {
  return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
}

// A sum shows a value that is joined twice, or not at all.
struct Value {
  std::uint64_t sum = 0;
  std::uint64_t most = 0;
  std::uint64_t bits = 0;
  bool operator==(const Value&) const = default;
};

Value value_in(std::span<const std::byte> bytes) {
  Value value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

Value join(const Value& a, const Value& b) {
  return {a.sum + b.sum, std::max(a.most, b.most), a.bits ^ b.bits};
}

void join_values(std::span<std::byte> all, std::span<const std::byte> one) {
  const Value joined = join(value_in(all), value_in(one));
  std::memcpy(all.data(), &joined, sizeof joined);
}

// What the members bring to one meeting, and what all must get.
struct Meeting {
  std::vector<Value> values;
  std::vector<std::vector<std::byte>> messages;
  std::vector<Outcome> outcomes;
  Value joined;
  Rendezvous::Maxima worst{};

  [[nodiscard]] Status status_of(int rank) const {
    const Outcome& mine = outcomes[static_cast<std::size_t>(rank)];
    if (mine.code == Code::ok) return {};
    return fail(mine.code, "made by this test", mine.sys_errno);
  }
};

Outcome random_outcome(Random& random, int rank, bool fails) {
  constexpr std::array codes{Code::no_space, Code::io, Code::no_memory, Code::access_denied};
  Outcome outcome{.rank = rank};
  if (pick(random, 0, 1) == 0)
    outcome.end_of_file = static_cast<std::int64_t>(pick(random, 0, 1U << 30));
  if (!fails) return outcome;
  outcome.code = codes[pick(random, 0, codes.size() - 1)];
  outcome.sys_errno = static_cast<int>(pick(random, 0, 100));
  return outcome;
}

Meeting random_meeting(Random& random, int members) {
  Meeting meeting;
  const std::uint64_t failing = std::array<std::uint64_t, 4>{0, 0, 10, 50}[pick(random, 0, 3)];
  for (int rank = 0; rank < members; ++rank) {
    const Value value{pick(random, 0, 1U << 20), random(), random()};
    meeting.joined = rank == 0 ? value : join(meeting.joined, value);
    meeting.values.push_back(value);
    const std::uint64_t most_bytes = pick(random, 0, 9) == 0 ? 2 * Mailbox::inline_bytes : 200;
    meeting.messages.emplace_back(pick(random, 0, most_bytes), static_cast<std::byte>(random()));
    const bool fails = pick(random, 1, 100) <= failing;
    meeting.outcomes.push_back(random_outcome(random, rank, fails));
    const auto words = words_of(meeting.outcomes.back());
    meeting.worst = {std::max(meeting.worst.first, words.first),
                     std::max(meeting.worst.second, words.second)};
  }
  return meeting;
}

void check_error(const Channel& channel, const Meeting& meeting, const Error& error) {
  const Outcome worst = outcome_of(meeting.worst);
  EXPECT_EQ(error.code, worst.code) << describe(error);
  const Code mine = meeting.outcomes[static_cast<std::size_t>(channel.rank())].code;
  const std::string named = "rank " + std::to_string(worst.rank) + " failed";
  EXPECT_NE(error.what.find(mine == worst.code ? "made by this test" : named), std::string::npos)
      << error.what;
}

void check_combine(Channel& channel, const Meeting& meeting) {
  const auto me = static_cast<std::size_t>(channel.rank());
  const Status mine = meeting.status_of(channel.rank());
  const auto brought =
      mine ? Result<Contribution>({bytes_of(meeting.values[me]), meeting.messages[me]})
           : std::unexpected(mine.error());
  const auto joined = channel.combine(brought, join_values);
  ASSERT_EQ(joined.has_value(), meeting.worst.first == 0);
  if (!joined) return check_error(channel, meeting, joined.error());
  ASSERT_EQ(joined->size(), sizeof(Value));
  EXPECT_EQ(value_in(*joined), meeting.joined);
  const auto near = channel.near_ranks();
  EXPECT_EQ(near[static_cast<std::size_t>(channel.near_index())], channel.rank());
  for (std::size_t i = 0; i < near.size(); ++i) {
    const auto message = channel.near_message(static_cast<int>(i));
    ASSERT_TRUE(message.has_value());
    EXPECT_TRUE(
        std::ranges::equal(message->bytes, meeting.messages[static_cast<std::size_t>(near[i])]));
  }
}

void check_agree(Channel& channel, const Meeting& meeting) {
  const auto me = static_cast<std::size_t>(channel.rank());
  const Outcome all = channel.agree(meeting.outcomes[me]);
  EXPECT_EQ(words_of(all).first, meeting.worst.first);
  EXPECT_EQ(words_of(all).second, meeting.worst.second);
}

// The members add up the lengths of their messages.
void check_sum(Channel& channel, const Meeting& meeting) {
  const auto me = static_cast<std::size_t>(channel.rank());
  const auto number = [&](std::size_t i) { return std::uint64_t{meeting.messages[i].size()}; };
  const Status mine = meeting.status_of(channel.rank());
  const auto sum = channel.sum_in_order(mine ? Result<std::uint64_t>(number(me))
                                             : std::unexpected(mine.error()));
  ASSERT_EQ(sum.has_value(), meeting.worst.first == 0);
  if (!sum) return check_error(channel, meeting, sum.error());
  SumInOrder expected;
  for (std::size_t i = 0; i < meeting.messages.size(); ++i) {
    if (i == me) expected.before = expected.all;
    expected.all += number(i);
  }
  EXPECT_EQ(sum->before, expected.before);
  EXPECT_EQ(sum->all, expected.all);
}

test::World random_world(Random& random, int most_members, int most_nodes) {
  test::World world;
  world.members = static_cast<int>(pick(random, 1, static_cast<std::uint64_t>(most_members)));
  world.nodes = static_cast<int>(
      pick(random, 1, static_cast<std::uint64_t>(std::min(world.members, most_nodes))));
  world.placement = static_cast<test::Placement>(pick(random, 0, 2));
  return world;
}

std::string describe_world(const test::World& world) {
  return std::to_string(world.members) + " members on " + std::to_string(world.nodes) + " nodes" +
         std::array{"", ", round-robin",
                    ", in NUMA domains"}[static_cast<std::size_t>(world.placement)];
}

TEST(NodeChannel, AllMembersGetTheSameOfRandomMeetings) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const test::World world = random_world(random, 14, 9);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe_world(world));
    std::vector<std::pair<std::uint64_t, Meeting>> meetings;
    for (int i = 0; i < 40; ++i)
      meetings.emplace_back(pick(random, 0, 2), random_meeting(random, world.members));
    test::run_members(world, [&](std::unique_ptr<Channel> channel) {
      for (const auto& [kind, meeting] : meetings) {
        if (kind == 0) check_combine(*channel, meeting);
        if (kind == 1) check_agree(*channel, meeting);
        if (kind == 2) check_sum(*channel, meeting);
        if (testing::Test::HasFatalFailure()) return;
      }
      // Others may still read this member's last message.
      EXPECT_EQ(channel->agree({}).code, Code::ok);
    });
    if (HasFailure()) return;
  }
}

// A message stays until the next meeting but agree().
TEST(NodeChannel, NearMessagesOutliveAgreements) {
  test::World world{.members = 6, .nodes = 2};
  Random random(1);
  const Meeting meeting = random_meeting(random, world.members);
  test::run_members(world, [&](std::unique_ptr<Channel> channel) {
    const auto me = static_cast<std::size_t>(channel->rank());
    const Contribution mine{bytes_of(meeting.values[me]), meeting.messages[me]};
    const auto joined = channel->combine(mine, join_values);
    ASSERT_TRUE(joined.has_value());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(channel->agree({}).code, Code::ok);
    EXPECT_EQ(value_in(*joined), meeting.joined);
    const auto near = channel->near_ranks();
    for (std::size_t i = 0; i < near.size(); ++i)
      EXPECT_TRUE(std::ranges::equal(channel->near_message(static_cast<int>(i)).value().bytes,
                                     meeting.messages[static_cast<std::size_t>(near[i])]));
    EXPECT_EQ(channel->agree({}).code, Code::ok);
  });
}

// All living members meet as often; each meeting that the dead one misses is the same error.
void check_death(const test::World& world, int meetings_before) {
  SCOPED_TRACE(describe_world(world) + "; rank " + std::to_string(world.in_process) +
               " exits after " + std::to_string(meetings_before) + " meetings");
  test::run_members(world, [&](std::unique_ptr<Channel> channel) {
    const bool dies = channel->rank() == world.in_process;
    const Value value{1, 0, 0};
    for (int i = 0; i < meetings_before + (dies ? 0 : 4); ++i) {
      if (i % 2 == 0) {
        const auto joined = channel->combine(Contribution{bytes_of(value), {}}, join_values);
        ASSERT_EQ(joined ? Code::ok : joined.error().code,
                  i < meetings_before ? Code::ok : Code::peer_lost)
            << "meeting " << i;
      } else {
        const Outcome all = channel->agree({.rank = channel->rank()});
        ASSERT_EQ(all.code, i < meetings_before ? Code::ok : Code::peer_lost) << "meeting " << i;
      }
    }
  });
}

TEST(NodeChannel, TheDeathOfAMemberIsAnErrorOnAllNodes) {
  for (const int meetings_before : {0, 1, 4}) {
    check_death({.members = 3, .in_process = 1}, meetings_before);
    check_death({.members = 4, .nodes = 2, .in_process = 3}, meetings_before);
    check_death({.members = 9, .nodes = 3, .in_process = 4}, meetings_before);
    check_death(
        {.members = 11, .nodes = 5, .placement = test::Placement::round_robin, .in_process = 10},
        meetings_before);
  }
}

// Otherwise members near the dead one would leave with an error a meeting that the others complete.
TEST(NodeChannel, DeathInAMeetingHasOneOutcome) {
  const test::World world{.members = 6, .nodes = 2, .in_process = 1};  // on a node with 0 and 2
  constexpr int late = 5;
  std::atomic<int> left{0};
  std::array<std::atomic<Code>, 6> codes{};
  test::run_members(world, [&](std::unique_ptr<Channel> channel) {
    const int me = channel->rank();
    if (me == world.in_process) std::thread([] { ::usleep(20'000), ::_exit(0); }).detach();
    // The death happens while others wait for this member, and can be noticed.
    for (int i = 0; me == late && i < 50 && left == 0; ++i) ::usleep(10'000);
    codes[static_cast<std::size_t>(me)] = channel->agree({.rank = me}).code;
    ++left;
    // Otherwise the process ends too late.
    while (me == world.in_process) ::usleep(1000);
    EXPECT_EQ(channel->agree({.rank = me}).code, Code::peer_lost);
  });
  for (const int rank : {2, 3, 4, 5}) EXPECT_EQ(codes[0], codes[static_cast<std::size_t>(rank)]);
}

}  // namespace
}  // namespace shima
