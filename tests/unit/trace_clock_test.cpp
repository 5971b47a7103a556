// The clock of traces: what follows from readings of a made counter, and that the real one shows
// the time of the system.
#include "observe/trace_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "observe/board.h"

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
  EXPECT_FALSE(TickScale::between({0, 0}, {ms / 2, ms / 2})) << "too near each other";
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

using Verdict = TickClock::Verdict;
constexpr std::uint64_t ticks_per_ns = 3;

ClockPair pair_at(std::uint64_t ns, std::uint64_t more_ticks = 0) {
  return {1000 + ns * ticks_per_ns + more_ticks, 7 * ms + ns};
}

TEST(TickClock, IsUsedOnceTwoIntervalsAgree) {
  TickClock clock;
  EXPECT_TRUE(clock.is_due(0));
  for (const std::uint64_t at_ns : {0 * ms, 10 * ms, 20 * ms}) {
    EXPECT_FALSE(clock.ns(pair_at(at_ns + 1).ticks));
    EXPECT_EQ(clock.take(pair_at(at_ns)), at_ns < 20 * ms ? Verdict::unknown : Verdict::usable);
    EXPECT_EQ(clock.ns_per_tick() != 0, at_ns == 20 * ms);
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
    EXPECT_EQ(clock.take(pair_at(at_ms * ms, jump)), Verdict::unusable);
    EXPECT_FALSE(clock.ns(pair_at(at_ms * ms + ms, jump).ticks)) << at_ms;
  }
  EXPECT_EQ(clock.take(pair_at(50 * ms, jump)), Verdict::usable);
  EXPECT_TRUE(clock.ns(pair_at(51 * ms, jump).ticks)) << "it goes on as before";
}

TEST(TickClock, IsNotUsedWhereTheCounterHasGoneBack) {
  TickClock clock;
  for (const std::uint64_t at_ms : {100, 110, 120}) clock.take(pair_at(at_ms * ms));
  ASSERT_TRUE(clock.ns(pair_at(121 * ms).ticks));
  EXPECT_FALSE(clock.ns(pair_at(0).ticks));
  EXPECT_EQ(clock.take({1000, 200 * ms}), Verdict::unusable);
  EXPECT_FALSE(clock.ns(1001));
}

TEST(TickClock, TellsNothingOfALongInterval) {
  TickClock clock;
  for (const std::uint64_t at_ms : {0, 10, 20}) clock.take(pair_at(at_ms * ms));
  EXPECT_EQ(clock.take(pair_at(500 * ms, 5 * ms)), Verdict::unknown) << "others have seen the jump";
}

TEST(TickClock, TellsWhenALongCallBegan) {
  const ClockPair now = pair_at(900 * ms);
  const std::uint64_t begin_ticks = pair_at(300 * ms).ticks;
  const std::uint64_t too_fast =
      (std::uint64_t{1} << TickScale::fraction_bits) / (ticks_per_ns + 1);
  TickClock clock;
  EXPECT_NEAR(static_cast<double>(clock.ns_before(now, begin_ticks, too_fast)),
              static_cast<double>(now.ns - 450 * ms), 1000)
      << "without a pair, by what it was told";
  clock.take(pair_at(200 * ms));
  EXPECT_NEAR(static_cast<double>(clock.ns_before(now, begin_ticks, too_fast)),
              static_cast<double>(pair_at(300 * ms).ns), 1000)
      << "between its pair and the end";
  clock.take(pair_at(400 * ms));
  EXPECT_NEAR(static_cast<double>(clock.ns_before(now, begin_ticks, too_fast)),
              static_cast<double>(now.ns - 450 * ms), 1000)
      << "its pair is later";
  EXPECT_EQ(clock.ns_before(now, now.ticks + 1, too_fast), now.ns) << "a counter that was set back";
}

// Begin and end of a call, each between two readings of the system's clock. `during` is the call.
template <class During>
void expect_system_time(trace::CallBegin (&begin)(), const During& during) {
  const std::uint64_t before = system_ns();
  const trace::CallBegin call = begin();
  const std::uint64_t after = system_ns();
  during();
  const std::uint64_t before_end = system_ns();
  const CallTimes times = call.end();
  const std::uint64_t after_end = system_ns();
  // The system may be correcting its clock.
  const std::uint64_t tolerance_ns = 100'000 + (after_end - before) / 1000;
  EXPECT_GE(times.begin_ns + tolerance_ns, before);
  EXPECT_LE(times.begin_ns, after + tolerance_ns);
  EXPECT_GE(times.end_ns + tolerance_ns, before_end);
  EXPECT_LE(times.end_ns, after_end + tolerance_ns);
}

void expect_system_time(std::chrono::microseconds len) {
  expect_system_time(trace::CallBegin::by_counter, [&] { std::this_thread::sleep_for(len); });
}

// Short calls, and some that a scale does not cover, also as a thread's first.
void expect_system_times(std::chrono::microseconds first) {
  expect_system_time(first);
  for (const std::uint64_t until_ns = system_ns() + 100 * ms; system_ns() < until_ns;)
    expect_system_time(trace::CallBegin::by_counter, [] {});
  for (const int len_ms : {1, 10, 150}) {
    expect_system_time(std::chrono::milliseconds(len_ms));
    expect_system_time(trace::CallBegin::by_counter, [] {});
    expect_system_time(trace::CallBegin::by_clock, [] {});
  }
}

bool system_trusts_counter() {
  std::string name;
  std::ifstream("/sys/devices/system/clocksource/clocksource0/current_clocksource") >> name;
#if defined(__x86_64__)
  return name == "tsc";
#else
  return false;
#endif
}

TEST(TraceClock, ShowsTheTimeOfTheSystem) {
  expect_system_times({});
  trace::start_clock();
  for (int round = 0; round < 2; ++round) {
    std::vector<std::jthread> threads;
    for (const int len_us : {0, 500, 5000})
      threads.emplace_back([=] {
        if (len_us == 0) board::first_thread = board::this_thread();
        expect_system_times(std::chrono::microseconds(len_us));
      });
  }
  board::first_thread = nullptr;
  EXPECT_EQ(trace::space.ns_per_tick != 0, system_trusts_counter());
}

TEST(TraceClock, KnowsTheBeginOfACallDuringWhichTheCounterIsGivenUp) {
  trace::start_clock();
  std::jthread([] { expect_system_times({}); }).join();
  expect_system_time(trace::CallBegin::by_counter, [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    trace::space.ns_per_tick = 0;
  });
}

}  // namespace
}  // namespace shima
