// What reports make of the calls of LAPI and of shared memories.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tool/trace/chrome_trace.h"
#include "tool/trace/meetings.h"
#include "tool/trace/trace_page.h"
#include "tool/trace/trace_summary.h"
#include "trace_made.h"

namespace shima {
namespace {

using test::Made;
using test::ms;
using tool::TraceSet;

constexpr CallCode put = call::lapi_access(call::Lapi::put);
constexpr CallCode dsm_read = call::dsm_access_of(call::Dsm::read);
constexpr CallCode write_at =
    call::mpi_access(Direction::write, false, call::Pointer::explicit_offset, call::Mode::blocking);

TraceEvent& add_task(Made& made, std::size_t rank, CallCode code, std::int64_t begin_ms, int task,
                     std::uint64_t bytes = 0) {
  TraceEvent& event = made.add(rank, code, begin_ms, 10);
  event.file = 0;
  event.task = task;
  event.bytes = bytes;
  return event;
}

std::vector<nlohmann::json> chrome_events(const TraceSet& set) {
  std::ostringstream text;
  tool::write_chrome_trace(set, text);
  std::vector<nlohmann::json> calls;
  const auto trace = nlohmann::json::parse(text.str());
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X") calls.push_back(event);
  return calls;
}

TEST(Meetings, AreCountedByPlace) {
  Made made(3);
  for (const std::size_t rank : {0U, 1U, 2U}) {
    add_task(made, rank, call::lapi_global_fence, rank == 2 ? 15 : 10, -1);
    add_task(made, rank, call::dsm_barrier, rank == 1 ? 45 : 40, -1);
    add_task(made, rank, call::lapi_global_fence, rank == 0 ? 75 : 70, -1);
  }
  const TraceSet set = made.set();
  const auto meetings = tool::find_meetings(set);
  ASSERT_EQ(meetings.size(), 3U);
  EXPECT_EQ(meetings[0].last_in().rank, 2);
  EXPECT_EQ(meetings[1].last_in().rank, 0);
  EXPECT_EQ(meetings[2].last_in().rank, 1);
  EXPECT_EQ(meetings[2].waited_ns(meetings[2].arrivals[0]), 5 * ms);
  for (const auto& event : chrome_events(set))
    EXPECT_EQ(event["args"]["last_in"], event["name"] == "dsm_barrier" ? 1
                                        : event["ts"] >= 60000         ? 0
                                                                       : 2);
  const auto summary = tool::summarize(set);
  EXPECT_EQ(summary.traffic.at({0, 1}).waited_ns, 5U * ms);
  EXPECT_EQ(summary.traffic.at({0, 2}).waited_ns, 5U * ms);
  EXPECT_FALSE(summary.traffic.contains({0, 0}));
}

TEST(Meetings, EndWithTheFirstRun) {
  Made made(2);
  for (const std::size_t rank : {0U, 1U}) {
    for (int i = 0; i < 3; ++i) add_task(made, rank, call::dsm_barrier, i * 20, -1);
    TraceEvent& run = add_task(made, rank, call::dsm_barrier, 100, -1);
    run.calls = rank == 0 ? 5 : 4;
    if (rank == 1) add_task(made, rank, call::dsm_barrier, 120, -1);
  }
  EXPECT_EQ(tool::find_meetings(made.set()).size(), 3U);
  Made unequal(2);
  for (int i = 0; i < 3; ++i) add_task(unequal, i > 0 ? 1 : 0, call::dsm_barrier, i * 20, -1);
  EXPECT_TRUE(tool::find_meetings(unequal.set()).empty());
}

TEST(Tasks, BytesAndWaitsAreSummedByPair) {
  Made made(2);
  add_task(made, 0, put, 0, 1, 1000);
  TraceEvent& run = add_task(made, 0, put, 20, 1, 4000);
  run.calls = 1000;
  run.busy_ns = 2 * ms;
  add_task(made, 1, dsm_read, 0, 0, 500);
  add_task(made, 1, call::lapi_wait_counter, 20, 0);
  add_task(made, 1, call::lapi_access(call::Lapi::rmw), 40, 0, 4);
  const auto summary = tool::summarize(made.set());
  EXPECT_EQ(summary.calls, 1004U);
  EXPECT_EQ(summary.sent, 5000U);
  EXPECT_EQ(summary.fetched, 500U);
  EXPECT_EQ(summary.written + summary.read, 0U);
  EXPECT_EQ(summary.io_ns, 42U * ms);
  EXPECT_EQ(summary.traffic.at({0, 1}).sent, 5000U);
  EXPECT_EQ(summary.traffic.at({1, 0}).fetched, 500U);
  EXPECT_EQ(summary.traffic.at({1, 0}).waited_ns, 10U * ms);
  EXPECT_EQ(summary.transfers.writes[tool::size_bin(1000)], 1U);
  EXPECT_EQ(summary.transfers.writes[tool::size_bin(4)], 1000U);
  EXPECT_EQ(summary.transfers.reads[tool::size_bin(500)], 1U);
  // 2 ms of the 10 ms from the first to the last call of the run.
  ASSERT_EQ(summary.timeline.size(), 2U);
  EXPECT_NEAR(summary.timeline[0].cells[200].write, 0.2F, 0.01F);
  EXPECT_GT(summary.timeline[1].cells[200].wait, 0.9F);
}

TEST(Tasks, RunsHaveTracksOfTheirOwn) {
  Made made(1);
  add_task(made, 0, put, 0, 1, 8);
  for (const int begin : {0, 5}) {
    TraceEvent& run = add_task(made, 0, put, begin, 1, 80);
    run.calls = 10;
    run.busy_ns = 5000;
  }
  const auto events = chrome_events(made.set());
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0]["tid"], 0);
  EXPECT_FALSE(events[0]["args"].contains("calls"));
  EXPECT_EQ(events[0]["args"]["task"], 1);
  EXPECT_EQ(events[1]["args"]["calls"], 10);
  EXPECT_EQ(events[1]["args"]["in_calls_us"], 5.0);
  EXPECT_EQ(events[1]["args"]["bytes"], 80);
  EXPECT_EQ(events[1]["cat"], "send");
  EXPECT_NE(events[1]["tid"], events[2]["tid"]);  // they overlap
  EXPECT_NE(events[1]["tid"], 0);
}

// MPI-IO and LAPI in a process write a trace each.
TEST(Tasks, TracesOfAProcessAreJoined) {
  Made made(3);
  made.add_data(0, write_at, 0, 0, 100);
  add_task(made, 1, put, 10, 1, 8);
  made.add_data(2, write_at, 20, 100, 100);
  TraceSet set = made.set();
  set.processes[1].pid = set.processes[0].pid;
  set.processes[1].rank = -1;  // as pff.h, which does not know it
  set.processes[2].rank = 1;
  for (auto& process : set.processes) process.tasks = 2;
  tool::align(set);
  EXPECT_EQ(set.process_count(), 2U);
  EXPECT_TRUE(set.missing().empty());
  const auto events = chrome_events(set);
  ASSERT_EQ(events.size(), 3U);
  std::map<std::string, int> on_rank_0;
  for (const auto& event : events)
    if (event["pid"] == 0) ++on_rank_0[event["name"]];
  EXPECT_EQ(on_rank_0, (std::map<std::string, int>{{"LAPI_Put", 1}, {"MPI_File_write_at", 1}}));
  EXPECT_EQ(tool::summarize(set).timeline.size(), 2U);
}

TEST(Page, ShowsTasksOnlyIfThereAreCallsOfThem) {
  Made files(1);
  files.add_data(0, write_at, 0, 0, 100);
  const TraceSet of_files = files.set();
  const std::string page = tool::trace_page(of_files, tool::summarize(of_files));
  EXPECT_NE(page.find("<h1>File access of a job</h1>"), std::string::npos);
  EXPECT_EQ(page.find("tasks"), std::string::npos);
  Made tasks(200);  // several to a cell
  for (std::size_t rank = 0; rank < 200; ++rank)
    add_task(tasks, rank, put, 0, static_cast<int>((rank + 1) % 200), 1024);
  const TraceSet of_tasks = tasks.set();
  const std::string with = tool::trace_page(of_tasks, tool::summarize(of_tasks));
  EXPECT_NE(with.find("<title>0-3 sent to 0-3: 3"), std::string::npos);
  EXPECT_NE(with.find("<title>0-3 sent to 4-7: 1"), std::string::npos);
  EXPECT_NE(with.find("Sizes between tasks"), std::string::npos);
  EXPECT_EQ(with.find("written"), std::string::npos);
}

}  // namespace
}  // namespace shima
