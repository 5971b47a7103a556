// Traces: what a process writes, what is read of it, and what the reports make of it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <thread>

#include "observe/board.h"
#include "observe/trace_log.h"
#include "tool/trace/call_sites.h"
#include "tool/trace/chrome_trace.h"
#include "tool/trace/trace_page.h"
#include "tool/trace/trace_summary.h"
#include "trace_made.h"

namespace shima {
namespace {

using test::Made;
using test::ms;
using tool::ProcessTrace;
using tool::TraceSet;

constexpr CallCode code_of(Direction direction, bool together) {
  return call::mpi_access(direction, together, call::Pointer::explicit_offset,
                          call::Mode::blocking);
}
constexpr CallCode write_at = code_of(Direction::write, false);
constexpr CallCode read_at = code_of(Direction::read, false);
constexpr CallCode write_at_all = code_of(Direction::write, true);

TEST(TraceLog, WritesWhatIsReadBackAndCountsWhatIsDropped) {
  std::string directory = "trace-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  ::setenv(trace_variable, directory.c_str(), 1);
  ::setenv("SHIMA_TRACE_LIMIT", "200K", 1);  // the file grows while two threads write
  start_trace(2, 4);
  ASSERT_TRUE(is_traced());
  const std::uint16_t file = trace::file_number("/a/file");
  EXPECT_EQ(trace::file_number("/a/file"), file);
  constexpr std::size_t room = 200 * 1024 / sizeof(TraceEvent);
  constexpr std::size_t of_each = 1000;
  const auto call_often = [file](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const Traced traced;
      TraceEvent event = plain_event(file);
      event.bytes = 10;
      traced.end({write_at, __builtin_return_address(0)}, event);
    }
  };
  std::thread other(call_often, of_each);
  call_often(of_each);
  other.join();
  call_often(room);
  auto set = tool::read_traces(directory);
  ASSERT_TRUE(set);
  ASSERT_EQ(set->processes.size(), 1U);
  const ProcessTrace& process = set->processes.front();
  EXPECT_EQ(process.rank, 2);
  EXPECT_EQ(process.tasks, 4);
  EXPECT_EQ(set->missing(), (std::vector{0, 1, 3}));
  std::uint64_t bytes = 0;
  std::size_t events = 0;
  process.for_each([&](const TraceEvent& event) {
    ++events;
    bytes += event.bytes;
    EXPECT_EQ(process.file_of(event), "/a/file");
    EXPECT_EQ(event.call, write_at);
    ASSERT_NE(process.site_of(event), nullptr);
  });
  EXPECT_EQ(events, room);
  EXPECT_EQ(process.dropped, 2 * of_each);
  EXPECT_EQ(bytes + process.dropped_bytes, 10U * (room + 2 * of_each));
  std::filesystem::remove_all(directory);
}

TEST(TraceFile, WhatIsNoTraceIsRefused) {
  const auto head = std::make_unique<TraceHead>();
  std::vector<std::byte> bytes(trace_head_bytes);
  const auto refused = [&] {
    std::memcpy(bytes.data(), static_cast<const void*>(head.get()), sizeof(TraceHead));
    return !tool::read_trace(bytes, "t");
  };
  EXPECT_TRUE(refused());
  head->magic = TraceHead::magic_number;
  head->version = TraceHead::current_version + 1;
  head->event_bytes = sizeof(TraceEvent);
  head->head_bytes = trace_head_bytes;
  EXPECT_TRUE(refused());
  head->version = TraceHead::current_version;
  head->events = 1'000'000;  // more than there is room for
  EXPECT_FALSE(refused());
  EXPECT_TRUE(tool::read_trace(bytes, "t")->events.empty());
  EXPECT_FALSE(tool::read_trace(std::span(bytes).first(100), "t"));
}

TEST(TraceSet, ProcessesOfAMachineHaveOneClock) {
  Made made(2);
  made.add(0, call::file_open, 10, 1);
  made.add(1, call::file_open, 20, 1);
  TraceSet set = made.set();
  set.processes[0].shift_ns = 5;
  set.processes[1].shift_ns = 9;  // read a little later
  tool::align(set);
  EXPECT_EQ(set.processes[1].shift_ns, set.processes[0].shift_ns);
  EXPECT_EQ(set.end_ns - set.begin_ns, 11 * ms);
}

TEST(ChromeTrace, HasEveryCallOnATrackOfItsRank) {
  Made made(2);
  made.add(0, call::file_open, 0, 2);
  TraceEvent& write = made.add_data(0, write_at_all, 5, 100, 50);
  write.strategy = 3;
  write.reason = 7;
  for (const int begin : {10, 11}) made.add(1, read_at, begin, 5).background = 1;
  made.add(1, call::file_close, 12, 1).failed = 1;
  std::ostringstream text;
  tool::write_chrome_trace(made.set(), text);
  const auto json = nlohmann::json::parse(text.str());
  std::vector<nlohmann::json> calls;
  for (const auto& event : json["traceEvents"])
    if (event["ph"] == "X") calls.push_back(event);
  ASSERT_EQ(calls.size(), 5U);
  EXPECT_EQ(calls[1]["name"], "MPI_File_write_at_all");
  EXPECT_EQ(calls[1]["pid"], 0);
  EXPECT_EQ(calls[1]["ts"], 5000);
  EXPECT_EQ(calls[1]["dur"], 1000);
  EXPECT_EQ(calls[1]["args"]["file"], "/data <1>");
  EXPECT_EQ(calls[1]["args"]["offset"], 100);
  EXPECT_EQ(calls[1]["args"]["bytes"], 50);
  EXPECT_EQ(calls[1]["args"]["strategy"], "independent");
  EXPECT_EQ(calls[1]["args"]["reason"], "few_bytes");
  EXPECT_EQ(calls[1]["args"]["at"], "p.c:7 in main");
  EXPECT_EQ(calls[2]["args"]["failed"], true);
  EXPECT_EQ(calls[3]["tid"], 1);  // they overlap
  EXPECT_EQ(calls[4]["tid"], 2);
}

TEST(SizeBin, IsAPowerOfTwo) {
  EXPECT_EQ(tool::size_bin(0), 0U);
  EXPECT_EQ(tool::size_bin(1), 1U);
  EXPECT_EQ(tool::size_bin(4095), 12U);
  EXPECT_EQ(tool::size_bin(4096), 13U);
  EXPECT_EQ(tool::size_bin(~std::uint64_t{0}), tool::SizeHistogram::bins - 1);
}

TEST(Summary, SumsAreThoseOfTheEvents) {
  Made made(2);
  for (int i = 0; i < 10; ++i) {
    made.add_data(0, write_at, i, i * 1000, 1000);
    made.add_data(1, read_at, i, i * 500, 500);
  }
  const auto summary = tool::summarize(made.set());
  EXPECT_EQ(summary.calls, 20U);
  EXPECT_EQ(summary.written, 10000U);
  EXPECT_EQ(summary.read, 5000U);
  EXPECT_EQ(summary.sizes.writes[tool::size_bin(1000)], 10U);
  EXPECT_EQ(summary.sizes.reads[tool::size_bin(500)], 10U);
  ASSERT_EQ(summary.files.size(), 1U);
  const auto sum = [](const auto& cells) {
    double all = 0;
    for (const auto& row : cells) all = std::accumulate(row.begin(), row.end(), all);
    return all;
  };
  EXPECT_NEAR(sum(summary.files[0].writes), 10000, 1);
  EXPECT_NEAR(sum(summary.files[0].reads), 5000, 1);
  EXPECT_EQ(summary.files[0].end, 10000);
  ASSERT_EQ(summary.timeline.size(), 2U);
  EXPECT_GT(summary.timeline[0].cells.front().write, 0.9F);
  EXPECT_EQ(summary.timeline[0].cells.front().read, 0.0F);
}

TEST(Advice, NamesTheSmallIndependentCalls) {
  Made made(2);
  for (int i = 0; i < 600; ++i)
    for (const std::size_t rank : {0U, 1U}) made.add_data(rank, write_at, i, i * 100, 100);
  made.add_data(0, write_at_all, 700, 0, 100);  // does not hide them
  const auto advice = tool::summarize(made.set()).advice;
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_NE(advice[0].text.find("MPI_File_set_view"), std::string::npos) << advice[0].text;
  ASSERT_EQ(advice[0].calls.size(), 1U);
  EXPECT_EQ(advice[0].calls[0],
            "MPI_File_write_at at p.c:7 in main: 1200 calls of ranks 0-1, 100 bytes each");
}

TEST(Advice, FewOrLargeCallsNeedNone) {
  Made made(1);
  for (int i = 0; i < 900; ++i) made.add_data(0, write_at, i, i * 100, 100);
  for (int i = 0; i < 1100; ++i) made.add_data(0, read_at, i, 0, 1 << 20);
  EXPECT_TRUE(tool::summarize(made.set()).advice.empty());
}

TEST(Advice, NamesTheRankThatComesLast) {
  Made made(3);
  for (int i = 0; i < 10; ++i)
    for (const std::size_t rank : {0U, 1U, 2U})
      made.add_data(rank, write_at_all, i * 100 + (rank == 1 ? 50 : 0), 0, 1 << 20);
  const TraceSet set = made.set();
  const auto lateness = tool::find_lateness(tool::find_meetings(set));
  EXPECT_EQ(lateness.rank, 1);
  EXPECT_EQ(lateness.calls, 10U);
  EXPECT_EQ(lateness.last_in, 10U);
  EXPECT_NEAR(lateness.waited_s, 10 * 2 * 0.05, 1e-6);
  const auto advice = tool::summarize(made.set()).advice;
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_NE(advice[0].text.find("Rank 1 comes last to 10 of 10"), std::string::npos);
}

TEST(CallSite, IsALineOfTheSource) {
  EXPECT_EQ(tool::site_text("main", "/src/a.c:12 (discriminator 3)"), "a.c:12 in main");
  EXPECT_EQ(tool::site_text("main", "??:?"), "main");
  EXPECT_EQ(tool::site_text("main", "a.c:?"), "main");
  EXPECT_EQ(tool::site_text("??", "??:0"), "");
}

TEST(Page, EscapesNames) {
  Made made(1);
  made.add_data(0, write_at, 0, 0, 100);
  const TraceSet set = made.set();
  const std::string page = tool::trace_page(set, tool::summarize(set));
  EXPECT_EQ(page.find("/data <1>"), std::string::npos);
  EXPECT_NE(page.find("/data &lt;1&gt;"), std::string::npos);
}

}  // namespace
}  // namespace shima
