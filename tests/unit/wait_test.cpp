// How a wait passes its time: a brief one gives the core away many times before it sleeps, another
// one sleeps soon.
#include "ipc/wait.h"

#include <gtest/gtest.h>

namespace shima {
namespace {

struct Passed {
  bool well = false;
  int sleeps = 0;
};

// A wait that ends when the task has looked `looks` times.
Passed wait_for_looks(int looks, int tasks, WaitLength length) {
  Event event;
  Passed passed;
  const WaitHooks hooks{.progress = [&] { ++passed.sleeps; }, .peers = {}, .tasks_per_core = tasks};
  int looked = 0;
  passed.well = wait_until(event, hooks, [&] { return ++looked > looks; }, length).has_value();
  return passed;
}

TEST(Wait, SleepsSoonIfItMayBeLong) {
  const Passed passed = wait_for_looks(50, 2, WaitLength::unknown);
  EXPECT_TRUE(passed.well);
  EXPECT_GT(passed.sleeps, 40);
}

// It yields for 2 ms. On a busy machine even a few turns may take longer, but not each time.
TEST(Wait, DoesNotSleepIfItIsBrief) {
  constexpr int most_tries = 200;
  Passed passed;
  for (int i = 0; i < most_tries && (i == 0 || passed.sleeps != 0); ++i)
    passed = wait_for_looks(12, 1000, WaitLength::brief);
  EXPECT_TRUE(passed.well);
  EXPECT_EQ(passed.sleeps, 0);
}

TEST(Wait, SleepsIfItIsNotAsBriefAsExpected) {
  Event event;
  int sleeps = 0;
  const WaitHooks hooks{.progress = [&] { ++sleeps; }, .peers = {}, .tasks_per_core = 2};
  EXPECT_TRUE(wait_until(event, hooks, [&] { return sleeps == 3; }, WaitLength::brief));
}

TEST(Wait, NoticesALossWhetherBriefOrNot) {
  for (const WaitLength length : {WaitLength::unknown, WaitLength::brief}) {
    Event event;
    const WaitHooks hooks{
        .progress = {}, .peers = [] { return fail(Code::peer_lost, "gone"); }, .tasks_per_core = 4};
    const Status waited = wait_until(event, hooks, [] { return false; }, length);
    ASSERT_FALSE(waited);
    EXPECT_EQ(waited.error().code, Code::peer_lost);
  }
}

}  // namespace
}  // namespace shima
