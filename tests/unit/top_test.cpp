// Samples, recordings and the screen of `shima top`.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tool/top/history.h"
#include "tool/top/recording.h"
#include "tool/top/sample_json.h"
#include "tool/top/screen.h"
#include "tool/top/source.h"
#include "tool/top/terminal.h"

namespace shima::tool {
namespace {

constexpr CallCode write_all =
    call::mpi_access(Direction::write, true, call::Pointer::individual, call::Mode::blocking);

TaskSample task_with(int rank, std::uint32_t met, CallCode code, std::uint64_t asleep_ms) {
  TaskSample task{.host = "a", .pid = 100 + rank, .kind = "mpi", .program = "p", .job = "j"};
  task.rank = rank;
  task.tasks = 4;
  task.call = code;
  if (code != call::none) task.file = "/f", task.key = 9;
  task.asleep_ms = asleep_ms;
  task.files = {{.name = "/f", .key = 9, .met = met, .written = {}, .read = {}}};
  return task;
}

void set(TaskSample& task, Counted what, Tally tally) {
  task.counted[static_cast<std::size_t>(what)] = tally;
}

TEST(WaitReason, NamesThoseThatHaveNotCalled) {
  const Sample sample{0,
                      {task_with(0, 5, write_all, 10), task_with(1, 4, call::none, 0),
                       task_with(2, 5, write_all, 10), task_with(3, 4, call::none, 0)}};
  EXPECT_EQ(wait_reason(sample, sample.tasks[0]).ranks, (std::vector{1, 3}));
  EXPECT_EQ(wait_reason(sample, sample.tasks[0]).text,
            "waits for ranks 1, 3, which have not called");
  EXPECT_EQ(wait_reason(sample, sample.tasks[1]).text, "");
}

TEST(WaitReason, NamesThoseAtWorkIfAllHaveCalled) {
  const Sample sample{0, {task_with(0, 5, write_all, 10), task_with(1, 5, write_all, 0)}};
  EXPECT_EQ(wait_reason(sample, sample.tasks[0]).text, "waits for rank 1 at work");
}

TEST(WaitReason, OtherFilesAndJobsDoNotCount) {
  Sample sample{0, {task_with(0, 5, write_all, 10), task_with(1, 4, call::none, 0)}};
  sample.tasks[1].files[0].key = 8;
  EXPECT_TRUE(wait_reason(sample, sample.tasks[0]).ranks.empty());
  sample.tasks[1].files[0].key = 9;
  sample.tasks[1].job = "another";
  EXPECT_TRUE(wait_reason(sample, sample.tasks[0]).ranks.empty());
}

Sample part_of_four(int shown, std::vector<AbsentHost> absent) {
  Sample sample{0, {}};
  for (int rank = 0; rank < shown; ++rank)
    sample.tasks.push_back(task_with(rank, 0, call::none, 0));
  sample.absent = std::move(absent);
  return sample;
}

TEST(AbsenceNote, NamesHostsAndTheCommand) {
  using Why = AbsentHost::Why;
  EXPECT_EQ(absence_note(part_of_four(4, {})), "");
  EXPECT_FALSE(lacks_tasks(part_of_four(4, {})));
  EXPECT_TRUE(lacks_tasks(part_of_four(3, {})));
  EXPECT_EQ(absence_note(part_of_four(2, {})),
            "2 of 4 tasks are shown; see those on other hosts by: shima top j --hosts HOST,HOST");
  EXPECT_EQ(absence_note(part_of_four(2, {{"b", Why::not_asked}, {"c", Why::not_asked}})),
            "not shown: tasks on b, c; see them by: shima top j --hosts b,c");
  EXPECT_EQ(absence_note(part_of_four(2, {{"b", Why::silent}, {"c", Why::no_task}})),
            "b does not answer by ssh; check: ssh b shima top; c knows no task of this job; check: "
            "ssh c shima top");
  EXPECT_EQ(absence_note(part_of_four(2, {{"b", Why::asked}})), "asking b");
  Sample strange = part_of_four(2, {});
  for (TaskSample& task : strange.tasks) task.job = "$(x)'.1";
  EXPECT_EQ(absence_note(strange),
            "2 of 4 tasks are shown; see those on other hosts by: shima top '$(x)'\\''.1' --hosts "
            "HOST,HOST");
}

TEST(OtherHosts, AreThoseThatTasksHereName) {
  Sample here = part_of_four(3, {});  // on host a
  EXPECT_TRUE(other_hosts(here).empty());
  here.tasks[0].hosts = here.tasks[1].hosts = "n[1-2],a";
  here.tasks[2].hosts = "b,n2,a.example.org";
  EXPECT_EQ(other_hosts(here), (std::vector<std::string>{"b", "n2", "n1"}));
}

TEST(WaitReason, MeetingsOfTheWholeJob) {
  Sample sample{0, {task_with(0, 0, call::none, 10), task_with(1, 0, call::none, 0)}};
  for (TaskSample& task : sample.tasks) task.kind = "lapi", task.files.clear();
  sample.tasks[0].call = call::lapi_global_fence;
  sample.tasks[0].met = 2;
  sample.tasks[1].met = 1;
  EXPECT_EQ(wait_reason(sample, sample.tasks[0]).ranks, std::vector{1});
}

TEST(RankList, JoinsNeighbours) {
  EXPECT_EQ(rank_list({3, 1, 0, 2, 7}), "ranks 0-3, 7");
  EXPECT_EQ(rank_list({4}), "rank 4");
}

Sample full_sample() {
  Sample sample{12345, {task_with(0, 5, write_all, 10), task_with(1, 4, call::none, 0)}};
  for (std::size_t i = 0; i < counted_kinds; ++i) sample.tasks[0].counted[i] = {i + 1, 10 * i};
  sample.tasks[0].files[0].written = {3, 4};
  sample.tasks[0].queued = 2;
  sample.tasks[1].has_ended = true;
  sample.tasks[1].program = "\"quoted\" \xff";
  return sample;
}

TEST(SampleJson, ComesBackAsItWas) {
  Sample sample = full_sample();
  sample.absent = {{"b", AbsentHost::Why::not_asked}, {"c", AbsentHost::Why::no_task}};
  const auto back = sample_from_json(to_json(sample));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->absent, sample.absent);
  EXPECT_EQ(back->tasks[0], sample.tasks[0]);
  EXPECT_EQ(back->tasks[1].program, "\"quoted\" \xef\xbf\xbd");
}

TEST(SampleJson, WhatIsNoSampleIsRefused) {
  for (const char* text : {"", "{", "[]", "{}", R"({"tasks":1})", R"({"tasks":[{"rank":"x"}]})"})
    EXPECT_FALSE(sample_from_json(text)) << text;
  EXPECT_TRUE(sample_from_json(R"({"tasks":[{"new member":1}]})"));
}

TEST(Recording, EveryTruncationGivesWholeSamples) {
  const std::string text =
      recording_head() + "\n" + to_json(full_sample()) + "\n" + to_json(full_sample()) + "\n";
  const std::size_t first_end = text.find('\n', text.find('\n') + 1);
  for (std::size_t len = 0; len <= text.size(); len += 7) {
    std::istringstream from(text.substr(0, len));
    const auto samples = read_recording(from, "r");
    if (len < first_end) {
      EXPECT_FALSE(samples) << len;
    } else {
      ASSERT_TRUE(samples) << len;
      EXPECT_EQ(samples->size(), len + 1 >= text.size() ? 2U : 1U) << len;
    }
  }
}

TEST(Recording, AnotherVersionIsRefused) {
  std::istringstream from("{\"shima_top_recording\":2}\n" + to_json(full_sample()) + "\n");
  EXPECT_FALSE(read_recording(from, "r"));
}

TEST(History, MakesRatesOfTwoSamples) {
  Sample first{1000, {task_with(0, 0, call::none, 0)}};
  Sample second{3000, {task_with(0, 0, call::none, 0)}};
  set(second.tasks[0], Counted::collective_write, {4, 2000});
  set(second.tasks[0], Counted::get, {2, 600});
  set(second.tasks[0], Counted::wait, {1, 500'000'000});
  History history;
  history.add(first);
  history.add(second);
  const Rates rates = history.now(second.tasks[0]);
  EXPECT_DOUBLE_EQ(rates.written, 1000);
  EXPECT_DOUBLE_EQ(rates.read, 300);
  EXPECT_DOUBLE_EQ(rates.calls, 3);
  EXPECT_DOUBLE_EQ(rates.waiting, 0.25);
}

TEST(History, KeepsSoManyAndNoMore) {
  History history;
  for (std::uint64_t i = 1; i < 300; ++i) history.add({i * 1000, {task_with(0, 0, call::none, 0)}});
  EXPECT_EQ(history.of(history.last().tasks[0]).size(), History::length);
}

TEST(SparkLine, ScalesAndKeepsTheLast) {
  EXPECT_EQ(spark_line({0, 1, 50, 100}, 100, 6, Charset::ascii), "   .=@");
  EXPECT_EQ(spark_line({100, 0, 100}, 100, 2, Charset::ascii), " @");
  EXPECT_EQ(spark_line({5}, 0, 1, Charset::ascii), " ");
  EXPECT_EQ(spark_line({8}, 8, 1, Charset::unicode), "█");
}

TEST(Fit, CountsCharactersNotBytes) {
  EXPECT_EQ(fit("▁▂▃", 2), "▁▂");
  EXPECT_EQ(fit("ab", 4), "ab  ");
}

TEST(ShortBytes, HasFewCharacters) {
  EXPECT_EQ(short_bytes(0), "0");
  EXPECT_EQ(short_bytes(1000), "1000");
  EXPECT_EQ(short_bytes(1536), "1.5K");
  EXPECT_EQ(short_bytes(100.0 * 1024 * 1024), "100M");
}

History history_of(Sample sample) {
  History history;
  history.add(std::move(sample));
  return history;
}

std::vector<int> ranks_in(const View& view, const History& history) {
  std::vector<int> ranks;
  for (const TaskSample* const task : rows_of(view, history)) ranks.push_back(task->rank);
  return ranks;
}

TEST(View, SortsAndReverses) {
  Sample sample{1, {task_with(0, 0, call::none, 0), task_with(1, 0, call::none, 0)}};
  set(sample.tasks[1], Counted::write, {1, 500});
  const History history = history_of(sample);
  View view;
  EXPECT_EQ(ranks_in(view, history), (std::vector{0, 1}));
  std::ignore = press(view, {.character = 'w'}, 2);
  EXPECT_EQ(ranks_in(view, history), (std::vector{1, 0}));
  std::ignore = press(view, {.character = 'w'}, 2);
  EXPECT_EQ(ranks_in(view, history), (std::vector{0, 1}));
}

TEST(View, Filters) {
  Sample sample{1, {task_with(0, 0, call::none, 0), task_with(1, 0, write_all, 0)}};
  const History history = history_of(sample);
  View view;
  for (const char c : std::string("/write_"))
    std::ignore = press(view, {.character = static_cast<char32_t>(c)}, 2);
  std::ignore = press(view, {.key = Key::backspace}, 2);
  EXPECT_EQ(view.filter, "write");
  EXPECT_EQ(ranks_in(view, history), std::vector{1});
  EXPECT_EQ(press(view, {.character = 'q'}, 1), Wish::nothing);  // a letter of the word
  std::ignore = press(view, {.key = Key::escape}, 1);
  EXPECT_EQ(ranks_in(view, history), (std::vector{0, 1}));
}

TEST(View, KeysOfAReplay) {
  View view{.is_replay = true};
  EXPECT_EQ(press(view, {.character = '.'}, 1), Wish::step_forward);
  EXPECT_EQ(press(view, {.character = ','}, 1), Wish::step_back);
  std::ignore = press(view, {.character = '+'}, 1);
  EXPECT_DOUBLE_EQ(view.speed, 2);
  std::ignore = press(view, {.character = ' '}, 1);
  EXPECT_TRUE(view.is_paused);
  EXPECT_EQ(press(view, {.character = 'q'}, 1), Wish::quit);
}

// The characters of a line without the terminal's sequences.
std::size_t width_of(const std::string& line) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b')
      i = line.find('m', i);
    else if ((static_cast<unsigned char>(line[i]) & 0xc0U) != 0x80U)
      ++width;
  }
  return width;
}

TEST(Screen, FitsEverySize) {
  Sample sample = full_sample();
  for (int rank = 2; rank < 40; ++rank) sample.tasks.push_back(task_with(rank, 0, write_all, 3));
  const History history = history_of(sample);
  for (const std::size_t lines : {1, 2, 4, 5, 24, 60})
    for (const std::size_t columns : {1, 20, 80, 200})
      for (const bool alone : {false, true}) {
        View view{.shows_task = alone, .selected = 39, .charset = Charset::unicode};
        const auto drawn = draw(view, history, {columns, lines});
        EXPECT_EQ(drawn.size(), lines);
        for (const std::string& line : drawn) EXPECT_LE(width_of(line), columns) << line;
      }
}

TEST(Screen, KeepsTheSelectedRowInView) {
  Sample sample{1, {}};
  for (int rank = 0; rank < 100; ++rank) sample.tasks.push_back(task_with(rank, 0, call::none, 0));
  const History history = history_of(sample);
  View view{.selected = 99};
  std::ignore = draw(view, history, {80, 14});
  EXPECT_EQ(view.first, 90U);
  view.selected = 3;
  std::ignore = draw(view, history, {80, 14});
  EXPECT_EQ(view.first, 3U);
}

TEST(Keys, AreTakenFromSequences) {
  std::string unread = "q\x1b[A\x1b[6~\x1b[99;5u\r\x7f\x1b";
  const auto keys = take_keys(unread);
  ASSERT_EQ(keys.size(), 7U);
  EXPECT_EQ(keys[0].character, U'q');
  EXPECT_EQ(keys[1].key, Key::up);
  EXPECT_EQ(keys[2].key, Key::page_down);
  EXPECT_EQ(keys[3].key, Key::none);
  EXPECT_EQ(keys[4].key, Key::enter);
  EXPECT_EQ(keys[5].key, Key::backspace);
  EXPECT_EQ(keys[6].key, Key::escape);
}

TEST(FindJob, ByNameByNumberAndAlone) {
  Sample all{1, {task_with(0, 0, call::none, 0), task_with(1, 0, call::none, 0)}};
  for (TaskSample& task : all.tasks) task.job = "host.55";
  EXPECT_EQ(find_job(all, "").value(), "host.55");
  EXPECT_EQ(find_job(all, "55").value(), "host.55");
  EXPECT_EQ(find_job(all, "101").value(), "host.55");
  EXPECT_FALSE(find_job(all, "5"));
  all.tasks[1].job = "host.66";
  EXPECT_FALSE(find_job(all, ""));
  EXPECT_EQ(find_job(all, "101").value(), "host.66");
  EXPECT_EQ(part_of_job(all, "host.66").tasks.size(), 1U);
}

}  // namespace
}  // namespace shima::tool
