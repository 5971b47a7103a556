// The meeting of a node's members whose leader arrives twice (Rendezvous::gather).
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "group/node/node_segment.h"

namespace shima {
namespace {

constexpr std::uint32_t members = 6;

// Runs body(member) in a thread each; the leader is member 0.
template <class Body>
void in_threads(Body body) {
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < members; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

const WaitHooks lost{.progress = {},
                     .peers = [] { return Status(fail(Code::peer_lost, "one has ended")); }};

TEST(Gather, LeaderWaitsForAllAndReleasesThem) {
  constexpr std::uint64_t rounds = 3000;
  Rendezvous meeting{};
  std::atomic<std::uint64_t> arrived{0};
  std::uint64_t brought = 0;  // by the leader from elsewhere
  in_threads([&](std::uint32_t me) {
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      // Another member has the largest word in each round, and it is smaller than the round before.
      const std::uint64_t mine = (rounds - round) * 2 + (round % members == me ? 1 : 0);
      if (round % 7 == me) std::this_thread::yield();
      ++arrived;
      if (me == 0) {
        const auto gathered = meeting.gather({mine, round + me}, members, {});
        ASSERT_TRUE(gathered.has_value());
        ASSERT_EQ(arrived.load(), round * members);
        ASSERT_EQ(gathered->first, (rounds - round) * 2 + 1);
        ASSERT_EQ(gathered->second, round + members - 1);
        brought = round;
      }
      const auto met =
          me == 0 ? meeting.arrive({(rounds - round) * 2 + 1, round * 100}, members + 1, {})
                  : meeting.arrive({mine, round + me}, members + 1, {});
      ASSERT_TRUE(met.has_value());
      ASSERT_EQ(brought, round);
      ASSERT_EQ(met->first, (rounds - round) * 2 + 1);
      ASSERT_EQ(met->second, std::max(round * 100, round + members - 1));
    }
  });
}

TEST(Gather, LeaderAloneNeverWaits) {
  Rendezvous meeting{};
  for (std::uint64_t round = 1; round <= 3; ++round) {
    EXPECT_EQ(meeting.gather({round, 5}, 1, lost)->first, round);
    EXPECT_EQ(meeting.arrive({round + 1, 5}, 2, lost)->first, round + 1);
  }
}

// All members but one wait; the leader notices that this one has exited.
TEST(Gather, LeaderThatGivesUpBreaksItForAll) {
  Rendezvous meeting{};
  in_threads([&](std::uint32_t me) {
    if (me == 1) return;
    for (int i = 0; i < 3; ++i) {
      const auto met =
          me == 0 ? meeting.gather({}, members, lost) : meeting.arrive({}, members + 1, {});
      ASSERT_FALSE(met.has_value());
      ASSERT_EQ(met.error().code, Code::peer_lost);
    }
  });
}

// Another member notices it; the leader waits or arrives later.
TEST(Gather, LeaderFindsItBroken) {
  Rendezvous meeting{};
  in_threads([&](std::uint32_t me) {
    if (me == 1) return;
    for (int i = 0; i < 3; ++i) {
      const auto met = me == 0 ? meeting.gather({}, members, {})
                               : meeting.arrive({}, members + 1, me == 2 ? lost : WaitHooks{});
      ASSERT_FALSE(met.has_value());
      ASSERT_EQ(met.error().code, Code::peer_lost);
    }
  });
}

// A leader that was gathering when all had come still learns that one of them has given up.
TEST(Gather, MeetingThatBrokeMeanwhileDoesNotEndWell) {
  Rendezvous meeting{};
  std::atomic<bool> gathered{false};
  in_threads([&](std::uint32_t me) {
    if (me == 0) {
      ASSERT_TRUE(meeting.gather({}, members, {}).has_value());
      gathered = true;
      while ((meeting.generation.load() & Rendezvous::broken) == 0) std::this_thread::yield();
      ASSERT_FALSE(meeting.arrive({}, members + 1, {}).has_value());
      return;
    }
    WaitHooks hooks;
    if (me == 2) hooks.peers = [&] { return gathered ? lost.peers() : Status{}; };
    ASSERT_FALSE(meeting.arrive({}, members + 1, hooks).has_value());
  });
}

}  // namespace
}  // namespace shima
