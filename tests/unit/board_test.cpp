// The board of a process: counters of all threads add up, other processes read it, a child of fork
// leaves it alone.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "observe/board.h"
#include "tool/top/boards.h"

namespace shima {
namespace {

using tool::TaskSample;

// This process as `shima top` sees it.
TaskSample own_sample() {
  show_board({.kind = BoardKind::lapi, .rank = 3, .tasks = 5});
  tool::Boards boards;
  boards.find();
  const auto all = boards.look();
  const auto own = std::ranges::find(all.tasks, static_cast<int>(::getpid()), &TaskSample::pid);
  return own == all.tasks.end() ? TaskSample{} : *own;
}

std::uint64_t bytes_of(Counted kind) { return own_sample().of(kind).bytes; }

TEST(Board, IsFoundWithItsNames) {
  const TaskSample own = own_sample();
  EXPECT_EQ(own.kind, "lapi");
  EXPECT_EQ(own.rank, 3);
  EXPECT_EQ(own.tasks, 5);
  EXPECT_EQ(own.program, std::string(program_invocation_short_name).substr(0, 63));
  EXPECT_FALSE(own.has_ended);
}

TEST(Board, CountsOfAllThreadsAddUp) {
  const TaskSample before = own_sample();
  constexpr int calls = 10000;
  const auto put = [] {
    for (int i = 0; i < calls; ++i) count(Counted::put, 3);
  };
  std::thread first(put), second(put);
  put();
  first.join();
  second.join();
  const TaskSample after = own_sample();
  EXPECT_EQ(after.of(Counted::put).calls - before.of(Counted::put).calls, 3U * calls);
  EXPECT_EQ(after.of(Counted::put).bytes - before.of(Counted::put).bytes, 9U * calls);
}

TEST(Board, ShowsACallAndItsFile) {
  own_sample();
  BoardFile file("/some/where/data", 77);
  file.moved(Direction::write, 100);
  file.moved(Direction::read, 30);
  const CallCode code = call::mpi_access(Direction::write, true, call::Pointer::explicit_offset,
                                         call::Mode::blocking);
  {
    const Doing now(code, &file);
    const Doing inner(call::file_sync, &file);  // a call inside a call is not shown
    const TaskSample during = own_sample();
    EXPECT_EQ(call_name(during.call), "MPI_File_write_at_all");
    EXPECT_EQ(during.file, "/some/where/data");
    EXPECT_EQ(during.key, 77U);
  }
  const TaskSample after = own_sample();
  EXPECT_EQ(after.call, call::none);
  ASSERT_EQ(after.files.size(), 1U);
  EXPECT_EQ(after.files[0].met, 1U);
  EXPECT_EQ(after.files[0].written, (tool::Tally{1, 100}));
  EXPECT_EQ(after.files[0].read, (tool::Tally{1, 30}));
}

TEST(Board, AFileThatIsClosedLeavesItsSlot) {
  own_sample();
  {
    const BoardFile file("a");
  }
  EXPECT_TRUE(own_sample().files.empty());
  std::vector<BoardFile> many;
  for (int i = 0; i < 100; ++i) many.emplace_back("file");  // those without a slot are not shown
  for (BoardFile& file : many) file.moved(Direction::write, 1);
  EXPECT_EQ(own_sample().files.size(), BoardPage::slot_count);
}

TEST(Board, ALongNameKeepsItsEnd) {
  own_sample();
  const BoardFile file(fmt::format("{:x<400}/the-end", ""));
  const auto files = own_sample().files;
  ASSERT_EQ(files.size(), 1U);
  EXPECT_TRUE(files[0].name.starts_with("...x"));
  EXPECT_TRUE(files[0].name.ends_with("/the-end"));
}

TEST(Board, ASleepIsShownAndThenCounted) {
  const TaskSample before = own_sample();
  {
    const Asleep asleep(4);
    ::usleep(5000);
    const TaskSample during = own_sample();
    EXPECT_GE(during.asleep_ms, 4U);
    EXPECT_EQ(during.waits_for, 4);
  }
  {
    const Asleep again;  // the same wait
    EXPECT_GE(own_sample().asleep_ms, 5U);
  }
  {
    const Doing now(call::lapi_fence);
    const Asleep other;
    const TaskSample during = own_sample();
    EXPECT_LE(during.asleep_ms - during.uncounted_ms, 1U) << "another wait";
  }
  const TaskSample after = own_sample();
  EXPECT_EQ(after.asleep_ms, 0U);
  EXPECT_EQ(after.of(Counted::wait).calls, before.of(Counted::wait).calls + 3);
  EXPECT_GE(after.of(Counted::wait).bytes, before.of(Counted::wait).bytes + 4'000'000);
}

// A task that has woken to look, and is not yet asleep again, still waits; after its call it does
// not.
TEST(Board, AWaitGoesOnBetweenItsSleeps) {
  BoardPage page{};
  constexpr std::uint64_t second = 1'000'000'000;
  page.doing = pack_doing(1, BoardPage::no_slot, call::lapi_fence);
  page.wait_began_ns = second;
  page.last_sleep_end_ns = 3 * second;
  page.waits_for = 4 + 1;
  const TaskSample looks = tool::task_of(page, 3 * second + BoardPage::wait_gap_ns);
  EXPECT_EQ(looks.asleep_ms, 2020U);
  EXPECT_EQ(looks.uncounted_ms, 0U);
  EXPECT_EQ(looks.waits_for, 4);
  EXPECT_EQ(tool::task_of(page, 3 * second + 2 * BoardPage::wait_gap_ns).asleep_ms, 0U);
  page.doing = pack_doing(1, BoardPage::no_slot, call::none);
  EXPECT_EQ(tool::task_of(page, 3 * second).asleep_ms, 0U);
}

TEST(Board, AChildOfForkCountsElsewhere) {
  const std::uint64_t before = bytes_of(Counted::get);
  const pid_t child = ::fork();
  if (child == 0) {
    count(Counted::get, 1000);
    BoardFile file("of the child");
    file.moved(Direction::write, 5);
    tool::Boards boards;
    boards.find();
    const auto all = boards.look();
    ::_exit(std::ranges::count(all.tasks, static_cast<int>(::getpid()), &TaskSample::pid) == 0 ? 0
                                                                                               : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child is shown";
  EXPECT_EQ(bytes_of(Counted::get), before);
  EXPECT_TRUE(own_sample().files.empty());
}

TEST(Board, ShowsTheHostsThatTasksKnow) {
  own_sample();
  show_hosts(std::vector<std::string>{"b", "a"});
  EXPECT_EQ(own_sample().hosts, "a,b");
  EXPECT_TRUE(own_sample().is_own);
  std::vector<std::string> many;
  for (int i = 0; i < 2000; ++i) many.push_back("host" + std::to_string(i));
  show_hosts(many);
  const std::string list = own_sample().hosts;
  EXPECT_TRUE(list.starts_with("a,b,host0,host1,"));
  EXPECT_LT(list.size(), 4096U);
  EXPECT_GT(list.size(), 4000U);
  // A list that is being changed.
  auto page = std::make_unique<BoardPage>();
  page->hosts[0] = 'x';
  EXPECT_EQ(tool::task_of(*page, 0).hosts, "");
}

TEST(Board, IsReadAsUntrusted) {
  BoardPage page{};
  page.kind = static_cast<BoardKind>(99);
  page.program.fill('\x1b');  // without an end
  page.doing = pack_doing(1, 500, 0x7777);
  const TaskSample task = tool::task_of(page, 0);
  EXPECT_EQ(task.kind, "unknown");
  EXPECT_EQ(task.program, std::string(page.program.size(), '?'));
  EXPECT_TRUE(task.file.empty());
}

}  // namespace
}  // namespace shima
