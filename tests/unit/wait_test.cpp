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

}  // namespace
}  // namespace shima
