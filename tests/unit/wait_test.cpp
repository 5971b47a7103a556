// How a wait passes its time: a brief one gives the core away many times before it sleeps, another
// one sleeps soon.
#include "ipc/wait.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace shima {
namespace {

struct Passed {
  bool well = false;
  int sleeps = 0;
};

struct Tasks {
  int per_core = 2;
  bool one_group = true;
};

// A wait that ends when the task has looked `looks` times.
Passed wait_for_looks(int looks, Tasks tasks, WaitLength length) {
  Event event;
  Passed passed;
  const WaitHooks hooks{.progress = [&] { ++passed.sleeps; },
                        .peers = {},
                        .tasks_per_core = tasks.per_core,
                        .one_group = tasks.one_group};
  int looked = 0;
  passed.well = wait_until(event, hooks, [&] { return ++looked > looks; }, length).has_value();
  return passed;
}

TEST(Wait, SleepsSoonIfItMayBeLong) {
  const Passed passed = wait_for_looks(50, {.per_core = 2}, WaitLength::unknown);
  EXPECT_TRUE(passed.well);
  EXPECT_GT(passed.sleeps, 40);
}

TEST(Wait, SleepsAtOnceIfYieldsDoNotReachManyOthers) {
  const Passed passed =
      wait_for_looks(5, {.per_core = 1000, .one_group = false}, WaitLength::brief);
  EXPECT_TRUE(passed.well);
  EXPECT_GT(passed.sleeps, 1);
}

// On a busy machine even a few turns may take longer than a wait yields, but not each time.
void expect_no_sleep(int looks, Tasks tasks, WaitLength length) {
  constexpr int most_tries = 200;
  Passed passed;
  for (int i = 0; i < most_tries && (i == 0 || passed.sleeps != 0); ++i)
    passed = wait_for_looks(looks, tasks, length);
  EXPECT_TRUE(passed.well);
  EXPECT_EQ(passed.sleeps, 0);
}

TEST(Wait, DoesNotSleepIfItIsBrief) {
  expect_no_sleep(12, {.per_core = 1000}, WaitLength::brief);
  expect_no_sleep(12, {.per_core = 10, .one_group = false}, WaitLength::brief);
}

TEST(Wait, YieldsAfterItsSpinsOnACoreOfItsOwn) {
  expect_no_sleep(2010, {.per_core = 1}, WaitLength::unknown);
}

TEST(Wait, SleepsIfItIsNotAsBriefAsExpected) {
  Event event;
  int sleeps = 0;
  const WaitHooks hooks{.progress = [&] { ++sleeps; }, .peers = {}, .tasks_per_core = 2};
  EXPECT_TRUE(wait_until(event, hooks, [&] { return sleeps == 3; }, WaitLength::brief));
}

TEST(Wait, NoticesALossWhetherBriefOrNot) {
  for (const int tasks : {1, 4})
    for (const WaitLength length : {WaitLength::unknown, WaitLength::brief}) {
      Event event;
      const WaitHooks hooks{.progress = {},
                            .peers = [] { return fail(Code::peer_lost, "gone"); },
                            .tasks_per_core = tasks};
      const Status waited = wait_until(event, hooks, [] { return false; }, length);
      ASSERT_FALSE(waited);
      EXPECT_EQ(waited.error().code, Code::peer_lost);
    }
}

// No thread changes the word, so a waiter returns only if it is woken.
TEST(Futex, WakesOnlyTheWaitersThatAreMeant) {
  constexpr std::uint32_t too_long_us = 60'000'000;
  constexpr int rounds = 200;
  constexpr std::array<WaiterBits, 2> bits{1, 2};
  FutexWord word{0};
  std::array<std::atomic<int>, 2> wakes{};
  std::atomic<bool> over = false;
  std::vector<std::jthread> waiters;
  for (std::size_t i = 0; i < bits.size(); ++i)
    waiters.emplace_back([&, i] {
      while (!over) {
        EXPECT_TRUE(futex_wait(word, 0, too_long_us, bits[i]));
        ++wakes[i];
      }
    });
  const auto wake_until = [&](std::size_t which, int count) {
    while (wakes[which] < count) {
      futex_wake(word, INT32_MAX, bits[which]);
      std::this_thread::yield();
    }
  };
  wake_until(0, 1);
  const int before = wakes[0];
  wake_until(1, rounds);
  // One more may have been on its way.
  EXPECT_LE(wakes[0], before + 1);
  over = true;
  wake_until(0, before + 1);
  wake_until(1, wakes[1] + 1);
}

TEST(Futex, AWaitEndsWithItsTime) {
  FutexWord word{0};
  const auto begin = Clock::now();
  EXPECT_FALSE(futex_wait(word, 0, 1'020'000));  // more than a second, and a part
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(1020));
  EXPECT_TRUE(futex_wait(word, 1, 1'020'000));  // holds another value
}

}  // namespace
}  // namespace shima
