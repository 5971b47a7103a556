// TIMEOUT: 240
// SIGKILL of a requester or of the delegatee at any moment. The survivors get right answers or an
// error, and do not wait forever; no seat is lost.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>

#include "delegate_world.h"

namespace shima::delegate {
namespace {

using namespace std::chrono_literals;

// Counted by children.
struct Counters {
  std::atomic<std::uint64_t> bursts;
  std::atomic<std::uint32_t> finish;
};

pid_t start(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  EXPECT_GT(child, 0);
  return child;
}

int status_of(pid_t child) {
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

void kill_child(pid_t child) {
  ::kill(child, SIGKILL);
  const int status = status_of(child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
      << "it exited without a kill, with " << WEXITSTATUS(status);
}

int serve_for_ever(const World& world, std::uint32_t seats, std::uint32_t spin_us) {
  auto delegatee = Delegatee::open(
      world.desk(), {.seats = seats, .spin_us = spin_us, .admit = {}, .dismiss = {}});
  if (!delegatee) return 1;
  offer_model(**delegatee);
  return (*delegatee)->serve({}) ? 0 : 2;
}

constexpr std::size_t shares = 8;

// Sends bursts until told to finish; returns 0, or a number that identifies the failure.
int ask(const World& world, std::size_t share, std::uint32_t seed, Counters& counters,
        Code good_end) {
  const std::size_t bytes = World::arena_bytes / shares;
  const auto area = world.arena().subspan(share * bytes, bytes);
  auto requester = Requester::join(
      world.desk(),
      {.inline_bytes = 200, .spin_us = seed % 3 * 10, .reachable = world.reachable(), .task = -1},
      30s);
  if (!requester) return requester.error().code == good_end ? 0 : 3;
  Asker asker(**requester, area, seed);
  while (counters.finish.load() == 0) {
    const Status status = asker.burst();
    if (!status) return status.error().code == good_end ? 0 : 4;
    ++counters.bursts;
  }
  return good_end == Code::ok ? 0 : 5;
}

Counters& counters_in(const World& counting) {
  return *reinterpret_cast<Counters*>(counting.arena().data());
}

class Kill : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Kill, OfRequestersIsNotNoticedByTheOthers) {
  constexpr std::uint32_t seats = 4;
  constexpr std::uint32_t rounds = 300;
  World world(seats);
  World counting(1);
  Counters& counters = counters_in(counting);
  World ignored(1);
  const pid_t delegatee = start([&] { return serve_for_ever(world, seats, GetParam()); });
  const pid_t steady = start([&] { return ask(world, 0, 1, counters, Code::ok); });
  std::mt19937 dice(GetParam() + 1);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    std::array<pid_t, 2> victims{};
    for (std::size_t i = 0; i < victims.size(); ++i)
      victims[i] = start([&] { return ask(world, 1 + i, round, counters_in(ignored), Code::ok); });
    ::usleep(std::uniform_int_distribution<unsigned>(0, 3000)(dice));
    for (const pid_t victim : victims) kill_child(victim);
    const std::uint64_t seen = counters.bursts;
    while (counters.bursts < seen + 2) ::usleep(100);  // the surviving requester continues
  }
  counters.finish = 1;
  EXPECT_EQ(status_of(steady), 0);
  std::vector<std::unique_ptr<Requester>> seated;
  for (std::uint32_t i = 0; i < seats; ++i) {
    auto joined = Requester::join(world.desk(), {}, 30s);
    ASSERT_TRUE(joined.has_value()) << "seats are lost: " << describe(joined.error());
    ASSERT_TRUE((*joined)->call({operation_sum, {}, {}, {}}));
    seated.push_back(*std::move(joined));
  }
  kill_child(delegatee);
}

TEST_P(Kill, OfTheDelegateeIsAnErrorOfAllItsRequesters) {
  constexpr std::uint32_t seats = 4;
  constexpr std::uint32_t rounds = 200;
  World counting(1);
  Counters& counters = counters_in(counting);
  std::mt19937 dice(GetParam() + 2);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    World world(seats);
    const pid_t delegatee = start([&] { return serve_for_ever(world, seats, GetParam()); });
    auto idle = Requester::join(world.desk(), {}, 30s);
    ASSERT_TRUE(idle.has_value()) << describe(idle.error());
    std::array<pid_t, 3> requesters{};
    for (std::size_t i = 0; i < requesters.size(); ++i)
      requesters[i] = start([&] { return ask(world, i, round, counters, Code::peer_lost); });
    ::usleep(std::uniform_int_distribution<unsigned>(0, 4000)(dice));
    kill_child(delegatee);
    const auto late = (*idle)->call({operation_sum, {}, {}, {}});
    ASSERT_FALSE(late.has_value());
    EXPECT_EQ(late.error().code, Code::peer_lost);
    for (const pid_t requester : requesters)
      ASSERT_EQ(status_of(requester), 0) << "round " << round;
  }
  EXPECT_GT(counters.bursts, rounds)
      << "no request was in progress when the delegatees were killed";
}

// A requester that exits while its answer is pending keeps its seat until the answer.
TEST(KillOfOne, ARequesterWhoseAnswerComesLater) {
  World world(1);
  auto delegatee =
      Delegatee::open(world.desk(), {.seats = 1, .spin_us = 0, .admit = {}, .dismiss = {}}).value();
  offer_model(*delegatee);
  std::vector<ReceivedRequest> kept;
  ASSERT_TRUE(delegatee->offer(
      50, [&](const ReceivedRequest& request) -> Result<std::optional<std::int64_t>> {
        kept.push_back(request);
        return std::nullopt;
      }));
  const pid_t requester = start([&] {
    auto joined = Requester::join(world.desk(), {}, 30s);
    return joined && (*joined)->call({50, {}, {}, {}}) ? 0 : 1;
  });
  while (kept.empty()) ASSERT_TRUE(delegatee->serve(10ms));
  kill_child(requester);
  ASSERT_TRUE(delegatee->serve(60ms));  // checks its seats
  const auto none = Requester::join(world.desk(), {}, 1ms);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Code::timed_out);
  delegatee->finish(kept[0], 1);
  ASSERT_TRUE(delegatee->serve(60ms));
  EXPECT_TRUE(Requester::join(world.desk(), {}, 30s));
}

INSTANTIATE_TEST_SUITE_P(Modes, Kill, testing::Values(0U, 40U), [](const auto& mode) {
  return std::string(mode.param > 0 ? "spinning" : "sleeping");
});

}  // namespace
}  // namespace shima::delegate
