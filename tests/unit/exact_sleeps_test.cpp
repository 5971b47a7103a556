#include "base/process/exact_sleeps.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>

namespace shima {
namespace {

int slack_ns() { return ::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0); }

TEST(ExactSleeps, LeaveTheSlackOfTheProgramAsItWas) {
  ASSERT_EQ(::prctl(PR_SET_TIMERSLACK, 70'000UL, 0, 0, 0), 0);
  {
    const ExactSleeps exact;
    EXPECT_EQ(slack_ns(), 1);
    const ExactSleeps nested;
    EXPECT_EQ(slack_ns(), 1);
  }
  EXPECT_EQ(slack_ns(), 70'000);
}

}  // namespace
}  // namespace shima
