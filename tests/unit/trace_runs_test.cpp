// Runs of short calls: what a process writes of many calls with little room.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <thread>

#include "base/result.h"
#include "observe/board.h"
#include "observe/trace_runs.h"
#include "tool/trace/trace_set.h"

namespace shima {
namespace {

constexpr CallCode put = call::lapi_access(call::Lapi::put);
constexpr CallCode get = call::lapi_access(call::Lapi::get);
constexpr CallCode dsm_read = call::dsm_access_of(call::Dsm::read);
constexpr CallCode fence = call::lapi_fence;
constexpr CallCode read_at =
    call::mpi_access(Direction::read, false, call::Pointer::explicit_offset, call::Mode::blocking);
constexpr int tiny_calls = 30'000;
constexpr int short_calls = 10'000;

struct Sum {
  std::uint64_t events = 0;
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  std::uint64_t pieces = 0;
  std::uint64_t failed = 0;
  std::uint64_t time_ns = 0;
  std::uint64_t most_calls = 0;
  bool is_sampled = false;
};

// The log is opened once in a process.
const std::string& directory() {
  static const std::string made = [] {
    std::string name = "trace-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    ::setenv(trace_variable, name.c_str(), 1);
    ::setenv("SHIMA_TRACE_LIMIT", "64K", 1);
    show_board({.kind = BoardKind::lapi, .rank = 1, .tasks = 2});
    start_trace(1, 2);
    return name;
  }();
  return made;
}

bool is_of(const TraceEvent& event, CallCode code, int task, bool background) {
  return event.call == code && event.task == task && (event.background != 0) == background;
}

Sum sum_of(const tool::TraceSet& set, CallCode code, int task, bool background = false) {
  Sum sum;
  set.processes.front().for_each([&](const TraceEvent& event) {
    if (!is_of(event, code, task, background)) return;
    ++sum.events;
    sum.calls += event.calls;
    sum.bytes += event.bytes;
    sum.pieces += event.pieces;
    sum.failed += event.failed;
    sum.time_ns += time_in_calls_ns(event);
    sum.most_calls = std::max<std::uint64_t>(sum.most_calls, event.calls);
    sum.is_sampled |= event.is_sampled != 0;
    EXPECT_TRUE(event.calls == 1 || event.failed == 0);
  });
  return sum;
}

void make_calls(int count, const ShortCall& call) {
  for (int i = 0; i < count; ++i)
    std::ignore = traced_if(true, [&] { return call; }, [] { return Status{}; });
}

TEST(TraceRuns, KeepEveryCallWithLittleRoom) {
  ASSERT_TRUE(std::filesystem::exists(directory()) && is_traced());
  const void* const site = __builtin_return_address(0);
  const ShortCall putting{.place = {put, site}, .task = 0, .bytes = 100, .pieces = 2};
  const ShortCall getting{.place = {get, site}, .task = 1, .bytes = 8};
  const ShortCall reading{
      .place = {dsm_read, site}, .task = 0, .bytes = 16, .offset = 64, .is_tiny = true};
  make_calls(150, putting);  // below a quarter of the room
  {
    const auto set = tool::read_traces(directory());
    ASSERT_TRUE(set);
    EXPECT_EQ(sum_of(*set, put, 0).events, 150U);
  }
  std::thread other(make_calls, short_calls, getting);
  for (int i = 0; i < short_calls; ++i) make_calls(1, putting), make_calls(1, getting);
  make_calls(tiny_calls, reading);
  other.join();
  std::ignore = traced_if(
      true, [&] { return putting; }, [] { return Status(fail(Code::bad_argument, "refused")); });
  const auto set = tool::read_traces(directory());
  ASSERT_TRUE(set);
  EXPECT_EQ(set->dropped(), 0U);
  const Sum puts = sum_of(*set, put, 0);
  EXPECT_EQ(puts.calls, 150U + short_calls + 1);
  EXPECT_EQ(puts.bytes, 100U * (150 + short_calls));
  EXPECT_EQ(puts.pieces, 2U * puts.calls);
  EXPECT_EQ(puts.failed, 1U);
  EXPECT_GT(puts.most_calls, 10U);
  EXPECT_FALSE(puts.is_sampled);
  EXPECT_GT(puts.time_ns, 0U);
  EXPECT_EQ(sum_of(*set, get, 1).calls, static_cast<std::uint64_t>(short_calls));
  EXPECT_EQ(sum_of(*set, get, 1, true).calls, static_cast<std::uint64_t>(short_calls));
  const Sum reads = sum_of(*set, dsm_read, 0);
  EXPECT_EQ(reads.calls, static_cast<std::uint64_t>(tiny_calls));
  EXPECT_EQ(reads.bytes, 16U * tiny_calls);
  EXPECT_GT(reads.most_calls, 100U);
  EXPECT_TRUE(reads.is_sampled);
}

void read_next(std::uint16_t file, std::int64_t number, const void* site) {
  const Traced traced = Traced::short_call(Tracing::as_now);
  const std::int64_t offset = number * 20;
  trace::end(
      {.place = {read_at, site}, .file = file, .bytes = 10, .offset = offset, .end = offset + 20},
      traced.times(), false);
}

TEST(TraceRuns, OfAccessesAreOfOneFile) {
  ASSERT_TRUE(std::filesystem::exists(directory()) && is_traced());
  const std::array files{trace::file_number("/one"), trace::file_number("/other")};
  for (std::int64_t i = 0; i < short_calls; ++i)
    for (const std::uint16_t file : files) read_next(file, i, __builtin_return_address(0));
  const auto set = tool::read_traces(directory());
  ASSERT_TRUE(set);
  EXPECT_EQ(set->dropped(), 0U);
  for (const char* const name : {"/one", "/other"}) {
    const tool::ProcessTrace& process = set->processes.front();
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;
    std::uint64_t most_calls = 0;
    std::int64_t lowest = 20 * short_calls;
    std::int64_t highest = 0;
    process.for_each([&](const TraceEvent& event) {
      if (event.call != read_at || process.file_of(event) != name) return;
      calls += event.calls;
      bytes += event.bytes;
      lowest = std::min(lowest, event.offset);
      highest = std::max(highest, event.end);
      most_calls = std::max<std::uint64_t>(most_calls, event.calls);
    });
    EXPECT_EQ(calls, static_cast<std::uint64_t>(short_calls));
    EXPECT_EQ(bytes, 10U * short_calls);
    EXPECT_EQ(lowest, 0);
    EXPECT_EQ(highest, 20 * short_calls);
    EXPECT_GT(most_calls, 10U);
  }
}

// The event of a site's first access, and how many calls it has.
std::uint64_t calls_of_first(const void* site, std::int64_t offset) {
  const auto set = tool::read_traces(directory());
  if (!set) return 0;
  std::uint64_t calls = 0;
  const tool::ProcessTrace& process = set->processes.front();
  process.for_each([&](const TraceEvent& event) {
    const tool::CallSite* const known = process.site_of(event);
    if (calls == 0 && known != nullptr && event.offset == offset &&
        known->address == reinterpret_cast<std::uint64_t>(site))
      calls = event.calls;
  });
  return calls;
}

TEST(TraceRuns, EndAtAPause) {
  ASSERT_TRUE(std::filesystem::exists(directory()) && is_traced());
  const std::uint16_t file = trace::file_number("/paused");
  constexpr std::int64_t first = 1000;
  const void* const site = reinterpret_cast<const void*>(&calls_of_first);
  for (std::int64_t i = 0; i < 20; ++i) read_next(file, first + i, site);
  const std::uint64_t before = calls_of_first(site, 20 * first);
  pause_trace();
  resume_trace();
  for (std::int64_t i = 20; i < 40; ++i) read_next(file, first + i, site);
  EXPECT_GT(before, 0U);
  EXPECT_EQ(calls_of_first(site, 20 * first), before);
}

TEST(TraceRuns, EndWhereTheNextAccessIsFarAway) {
  ASSERT_TRUE(std::filesystem::exists(directory()) && is_traced());
  const std::uint16_t file = trace::file_number("/far");
  const void* const site = reinterpret_cast<const void*>(&read_next);
  read_next(file, 0, site);
  constexpr std::int64_t far = std::int64_t{1} << 50;
  read_next(file, far, site);
  read_next(file, 1, site);
  EXPECT_EQ(calls_of_first(site, 0), 1U);
  EXPECT_EQ(calls_of_first(site, 20 * far), 1U);
}

TEST(TraceRuns, TakeAccessesOnBothSidesOfTheFirst) {
  ASSERT_TRUE(std::filesystem::exists(directory()) && is_traced());
  const std::uint16_t file = trace::file_number("/sides");
  const void* const site = reinterpret_cast<const void*>(&directory);
  constexpr std::int64_t far = std::int64_t{1} << 40;
  // The clock may end a run between any two.
  std::uint64_t calls = 0;
  for (std::int64_t first = far; calls != 5 && first < 50 * far; first += far) {
    for (const std::int64_t number : {first, first + 1, first - 1, first + 8, first - 8})
      read_next(file, number, site);
    calls = calls_of_first(site, 20 * (first - 8));
  }
  EXPECT_EQ(calls, 5U);
}

// In turn with those of another place, each of which ends what the last call has left to the next.
TEST(TraceRuns, GoOnAfterACallOfAnother) {
  ASSERT_TRUE(std::filesystem::exists(directory()) && is_traced());
  const std::uint16_t file = trace::file_number("/in_turn");
  const void* const site = reinterpret_cast<const void*>(&sum_of);
  const void* const other = reinterpret_cast<const void*>(&make_calls);
  constexpr std::int64_t far = std::int64_t{1} << 40;
  std::uint64_t calls = 0;
  for (std::int64_t first = far; calls != 10 && first < 50 * far; first += far) {
    for (std::int64_t i = 0; i < 10; ++i) {
      read_next(file, first + i, site);
      read_next(file, first - i, other);
    }
    calls = calls_of_first(site, 20 * first);
  }
  EXPECT_EQ(calls, 10U);
}

TEST(TraceRuns, FindOutTheTaskInTheCall) {
  ASSERT_TRUE(std::filesystem::exists(directory()) && is_traced());
  int task = -1;
  std::ignore = traced_if(
      true, [&] { return ShortCall{.place = {fence, nullptr}, .task = task}; },
      [&] {
        task = 7;
        return Status{};
      });
  const auto set = tool::read_traces(directory());
  ASSERT_TRUE(set);
  EXPECT_EQ(sum_of(*set, fence, 7).calls, 1U);
}

TEST(TraceRuns, TheTimeOfSampledCallsIsScaled) {
  std::uint32_t measured = 0;
  for (std::uint32_t calls = 1; calls < 200; ++calls) {
    measured += is_measured(calls - 1) ? 1 : 0;
    EXPECT_EQ(measured_among(calls), measured) << calls;
  }
  TraceEvent event = plain_event();
  event.duration_ns = 1'000'000;
  event.busy_ns = 50;
  EXPECT_EQ(time_in_calls_ns(event), 1'000'000U);
  event.calls = 17;
  EXPECT_EQ(time_in_calls_ns(event), 50U);
  event.is_sampled = 1;
  EXPECT_EQ(time_in_calls_ns(event), 50U * 17 / 5);
}

TEST(CallName, OfCallsOnOtherTasksMemory) {
  EXPECT_EQ(call_name(put), "LAPI_Put");
  EXPECT_EQ(call_name(call::lapi_access(call::Lapi::rmw64)), "LAPI_Rmw64");
  EXPECT_EQ(call_name(call::lapi_access(call::Lapi::amsendv, true)), "LAPI_Xfer(Amsendv)");
  EXPECT_EQ(call_name(dsm_read), "dsm_read");
  EXPECT_EQ(call_name(call::dsm_access_of(call::Dsm::write_b)), "dsm_write_b");
  EXPECT_EQ(call_name(call::dsm_access_of(call::Dsm::compare_and_swap, true)),
            "dsm_compare_and_swap_64");
  EXPECT_EQ(call_name(call::dsm_access_of(call::Dsm::fetch_add)), "dsm_fetch_add_32");
  EXPECT_EQ(call_name(call::dsm_close), "dsm_close");
}

}  // namespace
}  // namespace shima
