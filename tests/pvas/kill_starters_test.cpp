// TIMEOUT: 240
// Kills the process that started the tasks, at any moment: the tasks end too, and nothing is left
// (kill_workers.h).
#include <gtest/gtest.h>
#include <spawn.h>

#include <array>

#include "pvas/kill_workers.h"
#include "pvas/launch/root_process.h"
#include "pvas/launch/spawn.h"
#include "pvas/launch/stand_in.h"

namespace kill_workers {
namespace {

// Starts tasks as a program written for spaces.
[[noreturn]] void be_a_starter() {
  pvas_space* space = nullptr;
  int task = -1;
  if (pvas_create(nullptr, &space) != 0) _exit(1);
  for (int i = 0; i < 2; ++i)
    if (spawn_in(space, "change", &task) != 0) _exit(2);
  pvas_wait(space, task, -1, nullptr);
  _exit(3);
}

// Starts tasks as `shima exec --one-space`: the ranks of a launcher meet by its process ID.
[[noreturn]] void be_a_stand_in(pid_t launcher, int number) {
  using namespace shima::pvas;
  const std::string path = own_path();
  auto request = like_this_process({path, path, {path, "change"}});
  if (!request) _exit(1);
  request->launcher = launcher;
  StandIn stand_in;
  auto socket = connect_or_make_root(
      {.socket_name = socket_name_for(std::to_string(launcher) + "-" + std::to_string(number))});
  if (!socket) _exit(2);
  auto task = StartedTask::start(*std::move(socket), *request);
  if (!task) _exit(3);
  std::vector<StartedTask> tasks;
  tasks.push_back(*std::move(task));
  static_cast<void>(stand_in.wait_for(tasks));
  _exit(4);
}

// Starts tasks as `shima pvas run`.
pid_t start_command() {
  const std::string path = own_path();
  const std::string shima = path.substr(0, path.rfind("/tests/")) + "/bin/shima";
  std::array<const char*, 8> words{"shima", "pvas",       "run",    "-n",
                                   "2",     path.c_str(), "change", nullptr};
  pid_t child = -1;
  posix_spawn(&child, shima.c_str(), nullptr, nullptr, const_cast<char* const*>(words.data()),
              environ);
  return child;
}

std::vector<pid_t> start_starters(int round) {
  if (round % 3 == 1) return {start_command()};
  std::vector<pid_t> starters;
  const pid_t launcher = getpid();
  for (int i = 0; i < 1 + round % 3; ++i) {
    starters.push_back(fork());
    if (starters.back() != 0) continue;
    if (round % 3 == 0) be_a_starter();
    be_a_stand_in(launcher, round);
  }
  return starters;
}

TEST_F(Kill, OfWhoHasStartedTasksIsTheirEnd) {
  constexpr int rounds = 150;
  std::mt19937 dice(3);
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const std::vector<pid_t> starters = start_starters(round);
    for (const pid_t starter : starters) {
      ASSERT_GT(starter, 1);
      sleep_at_most(dice, round % 2 != 0 ? 10000 : 50000);
      ASSERT_EQ(kill(starter, SIGKILL), 0);
    }
    expect_nothing_left();
    for (const pid_t starter : starters) {
      const std::string text = "-" + std::to_string(starter) + "-";
      EXPECT_EQ(sockets_named(text), 0);
    }
  }
}

}  // namespace
}  // namespace kill_workers

int main(int argc, char** argv) { return kill_workers::run_kill_tests(argc, argv); }
