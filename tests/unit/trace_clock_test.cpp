// The clock of traces: what follows from readings of a made counter, and that the real one shows
// the time of the system.
#include "observe/trace_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace shima {
namespace {

constexpr std::uint64_t ms = 1'000'000;

std::uint64_t system_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::nanoseconds(Clock::now().time_since_epoch()).count());
}

TEST(TickScale, ShowsTheTimeOfACounter) {
  std::mt19937_64 random(1);
  for (const double ns_per_tick : {0.2, 1 / 2.9, 1.0, 52.08}) {
    const ClockPair first{random() >> 8U, random() >> 8U};
    const auto pair_after = [&](std::uint64_t ns) {
      return ClockPair{
          first.ticks + static_cast<std::uint64_t>(static_cast<double>(ns) / ns_per_tick),
          first.ns + ns};
    };
    const ClockPair last = pair_after(40 * ms);
    const auto scale = TickScale::between(first, last);
    ASSERT_TRUE(scale);
    for (int i = 0; i < 1000; ++i) {
      const ClockPair now = pair_after(40 * ms + random() % (39 * ms));
      ASSERT_TRUE(scale->covers(now.ticks));
      EXPECT_NEAR(static_cast<double>(scale->ns(now.ticks) - last.ns),
                  static_cast<double>(now.ns - last.ns), 100);
    }
  }
}

TEST(TickScale, EndsAfterAsLongAsItWasMeasured) {
  const auto scale = TickScale::between({1000, 0}, {1000 + 60 * ms, 20 * ms});
  ASSERT_TRUE(scale);
  EXPECT_TRUE(scale->covers(1000 + 60 * ms));
  EXPECT_TRUE(scale->covers(1000 + 119 * ms));
  EXPECT_FALSE(scale->covers(1000 + 121 * ms));
  EXPECT_FALSE(scale->covers(1000 + 59 * ms)) << "before its last pair";
  EXPECT_FALSE(scale->covers(0)) << "a counter that was set back";
}

TEST(TickScale, EndsAfterTheLongestTime) {
  const auto scale = TickScale::between({0, 0}, {10'000 * ms, 10'000 * ms});
  ASSERT_TRUE(scale);
  EXPECT_TRUE(scale->covers(10'099 * ms));
  EXPECT_FALSE(scale->covers(10'101 * ms));
}

TEST(TickScale, IsNotMadeOfWhatIsNoCounter) {
  EXPECT_FALSE(TickScale::between({0, 0}, {ms, ms})) << "too near each other";
  EXPECT_FALSE(TickScale::between({5, 0}, {5, 20 * ms})) << "it stands still";
  EXPECT_FALSE(TickScale::between({5, 0}, {4, 20 * ms})) << "it goes back";
  EXPECT_FALSE(TickScale::between({0, 0}, {1000, 20 * ms})) << "too slow";
  EXPECT_FALSE(TickScale::between({0, 0}, {3000 * ms, 20 * ms})) << "too fast";
}

TEST(TickScale, KnowsWhetherACounterKeepsItsPace) {
  const auto before = TickScale::between({0, 0}, {30 * ms, 10 * ms});
  const auto slewed = TickScale::between({0, 0}, {30 * ms, 10 * ms + ms / 200});
  const auto other = TickScale::between({0, 0}, {30 * ms, 11 * ms});
  ASSERT_TRUE(before && slewed && other);
  EXPECT_TRUE(slewed->agrees_with(*before));
  EXPECT_FALSE(other->agrees_with(*before));
}

constexpr std::uint64_t ticks_per_ns = 3;

ClockPair pair_at(std::uint64_t ns, std::uint64_t more_ticks = 0) {
  return {1000 + ns * ticks_per_ns + more_ticks, 7 * ms + ns};
}

TEST(TickClock, IsUsedOnceTwoIntervalsAgree) {
  TickClock clock;
  EXPECT_TRUE(clock.is_due(0));
  for (const std::uint64_t at_ns : {0 * ms, 10 * ms, 20 * ms}) {
    EXPECT_FALSE(clock.ns(pair_at(at_ns + 1).ticks));
    clock.take(pair_at(at_ns));
    EXPECT_FALSE(clock.is_due(pair_at(at_ns + TickScale::least_ns - 1).ns));
    EXPECT_TRUE(clock.is_due(pair_at(at_ns + TickScale::least_ns).ns));
  }
  const auto told = clock.ns(pair_at(25 * ms).ticks);
  ASSERT_TRUE(told);
  EXPECT_NEAR(static_cast<double>(*told), static_cast<double>(pair_at(25 * ms).ns), 2);
  EXPECT_FALSE(clock.ns(pair_at(31 * ms).ticks)) << "too long after the last pair";
}

TEST(TickClock, IsNotUsedWhereTheCounterHasJumped) {
  TickClock clock;
  for (const std::uint64_t at_ms : {0, 10, 20}) clock.take(pair_at(at_ms * ms));
  ASSERT_TRUE(clock.ns(pair_at(21 * ms).ticks));
  constexpr std::uint64_t jump = 5 * ms;
  for (const std::uint64_t at_ms : {30, 40}) {
    clock.take(pair_at(at_ms * ms, jump));
    EXPECT_FALSE(clock.ns(pair_at(at_ms * ms + ms, jump).ticks)) << at_ms;
  }
  clock.take(pair_at(50 * ms, jump));
  EXPECT_TRUE(clock.ns(pair_at(51 * ms, jump).ticks)) << "it goes on as before";
}

TEST(TickClock, IsNotUsedWhereTheCounterHasGoneBack) {
  TickClock clock;
  for (const std::uint64_t at_ms : {100, 110, 120}) clock.take(pair_at(at_ms * ms));
  ASSERT_TRUE(clock.ns(pair_at(121 * ms).ticks));
  EXPECT_FALSE(clock.ns(pair_at(0).ticks));
  clock.take({1000, 200 * ms});
  EXPECT_FALSE(clock.ns(1001));
}

// Between two readings of the system's clock.
void expect_system_time() {
  const std::uint64_t until_ns = system_ns() + 100 * ms;
  constexpr std::uint64_t tolerance_ns = 100'000;  // the system may be correcting its clock
  for (std::uint64_t before = system_ns(); before < until_ns; before = system_ns()) {
    const std::uint64_t shown = trace::call_time_ns();
    const std::uint64_t after = system_ns();
    trace::keep_clock(after);
    ASSERT_GE(shown + tolerance_ns, before);
    ASSERT_LE(shown, after + tolerance_ns);
  }
}

TEST(TraceClock, ShowsTheTimeOfTheSystem) {
  expect_system_time();
  trace::start_clock();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(expect_system_time);
}

}  // namespace
}  // namespace shima
