// TIMEOUT: 240
// Kills a task, a root, or all processes of a space, at any moment. The survivors continue or get
// an error, and in the end nothing is left (kill_workers.h).
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "pvas/kill_workers.h"

namespace kill_workers {
namespace {

TEST_F(Kill, OfATaskIsNotNoticedByTheOthers) {
  constexpr int rounds = 300;
  pvas_space* space = nullptr;
  ASSERT_EQ(pvas_create(nullptr, &space), 0) << pvas_error_message();
  int steady = -1;
  int task = -1;
  int status = -1;
  ASSERT_EQ(spawn_in(space, "keep", &steady), 0) << pvas_error_message();
  ASSERT_EQ(spawn_in(space, "see", &task), 0) << pvas_error_message();
  ASSERT_EQ(pvas_wait(space, task, 20000, &status), 0);
  const pid_t root = parent_of(pvas_process(space, steady));
  const std::size_t files = open_files_of(root);
  const std::string maps = "/proc/" + std::to_string(root) + "/maps";
  const int mappings = lines_of(maps);
  std::mt19937 dice(1);
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    ASSERT_EQ(spawn_in(space, "change", &task), 0) << pvas_error_message();
    sleep_at_most(dice, 6000);
    ASSERT_EQ(kill(pvas_process(space, task), SIGKILL), 0) << "round " << round;
    ASSERT_EQ(pvas_wait(space, task, 20000, &status), 0) << pvas_error_message();
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  }
  EXPECT_TRUE(eventually([&] { return children_of(root).size() == 1; }));
  EXPECT_TRUE(eventually([&] { return open_files_of(root) <= files; }))
      << files << " files became " << open_files_of(root);
  EXPECT_TRUE(eventually([&] { return lines_of(maps) <= mappings + 8; }))
      << mappings << " mappings became " << lines_of(maps);
  ASSERT_EQ(pvas_signal(space, steady, SIGTERM), 0);
  ASSERT_EQ(pvas_wait(space, steady, 20000, &status), 0);
  EXPECT_EQ(status, 0) << "its memory was changed, or there are tasks that are none";
  pvas_destroy(space);
  expect_nothing_left();
}

// Kills this process's first root, some time after it has appeared.
void hunt_root(unsigned seed) {
  std::mt19937 dice(seed);
  pid_t root = 0;
  eventually([&] {
    for (const pid_t child : children_of(getpid()))
      if (name_of_process(child) == "pvas-root") root = child;
    return root != 0;
  });
  sleep_at_most(dice, seed % 2 != 0 ? 8000 : 40000);
  if (root != 0) kill(root, SIGKILL);
}

// Every call returns, possibly with an error.
void use_a_space(const pvas_options& options) {
  pvas_space* space = nullptr;
  if (pvas_create(&options, &space) != 0) return;
  std::array<int, 3> tasks{-1, -1, -1};
  for (int& task : tasks) static_cast<void>(spawn_in(space, "change", &task));
  for (const int task : tasks) {
    int status = 0;
    const int waited = pvas_wait(space, task, 60, &status);
    EXPECT_TRUE(waited == PVAS_ERR_LOST || waited == PVAS_ERR_TIMEOUT || status != 0)
        << waited << ' ' << status;
  }
  pvas_destroy(space);
}

TEST_F(Kill, OfARootIsTheEndOfItsTasks) {
  constexpr unsigned rounds = 60;
  const std::string group = "kill-" + std::to_string(getpid()) + "-";
  pvas_options in_group{};
  in_group.slices = 2;
  in_group.group = group.c_str();
  for (unsigned round = 0; round < rounds && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    std::thread hunter([round] { hunt_root(round); });
    use_a_space(round % 3 == 0 ? in_group : pvas_options{});
    hunter.join();
    expect_nothing_left();
  }
}

// Like the out-of-memory killer: kills all processes that share the memory, in any order.
TEST_F(Kill, OfAllWhoShareTheMemoryLeavesNothing) {
  constexpr int rounds = 40;
  std::mt19937 dice(2);
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    pvas_space* space = nullptr;
    std::array<int, 3> tasks{-1, -1, -1};
    ASSERT_EQ(pvas_create(nullptr, &space), 0) << pvas_error_message();
    for (int& task : tasks) ASSERT_EQ(spawn_in(space, "change", &task), 0);
    std::vector<pid_t> victims{parent_of(pvas_process(space, tasks[0]))};
    for (const int task : tasks) victims.push_back(pvas_process(space, task));
    std::ranges::shuffle(victims, dice);
    sleep_at_most(dice, 6000);
    for (const pid_t victim : victims) kill(victim, SIGKILL);
    for (const int task : tasks) {
      int status = 0;
      const int waited = pvas_wait(space, task, 20000, &status);
      EXPECT_TRUE(waited == PVAS_ERR_LOST || (waited == 0 && WIFSIGNALED(status))) << waited;
    }
    pvas_destroy(space);
    expect_nothing_left();
  }
}

}  // namespace
}  // namespace kill_workers

int main(int argc, char** argv) { return kill_workers::run_kill_tests(argc, argv); }
