// TIMEOUT: 240
// SIGKILL of a task, of a root, or of who has started the tasks, at any moment. Who lives goes on
// or gets an error, and when all has ended there is nothing left: no process, dead or alive, no
// open file, no name of a socket. The program is its own worker (see worker.h).
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <map>
#include <random>

#include "pvas/aftermath.h"
#include "pvas/root_process.h"
#include "pvas/spawn.h"
#include "pvas/stand_in.h"
#include "shima/pvas.h"

namespace {

using namespace std::chrono_literals;

// ---- what workers do ---------------------------------------------------------------------------

std::atomic<bool> asked_to_end{false};

int start_own(const char* work) {
  pvas_space* space = nullptr;
  if (pvas_own(&space) != 0) return -1;
  static const std::string path = own_path();
  char* arguments[] = {const_cast<char*>("worker"), const_cast<char*>(work), nullptr};
  pvas_program program{};
  program.file = path.c_str();
  program.arguments = arguments;
  int task = -1;
  pvas_spawn(space, &program, &task);
  return task;  // the handle stays, and with it the task
}

// Everything that changes what others see, again and again.
int change() {
  static int shown = 0;
  const std::string name = "of " + std::to_string(pvas_self());
  for (int round = 0;; ++round) {
    void* address = nullptr;
    int owner = -1;
    MUST(pvas_export(name.c_str(), &shown, sizeof shown) == 0);
    if (pvas_import("steady", 0, &address, nullptr, &owner) == 0 && pvas_hold(owner) == 0)
      MUST(pvas_release(owner) == 0);
    void* const mapped =
        mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(mapped != MAP_FAILED && munmap(mapped, 1 << 20) == 0);
    if (round % 8 == 7) MUST(start_own("wait") >= 0);
    MUST(pvas_withdraw(name.c_str()) == 0);
  }
}

// Looks at its memory all the time; 0 if nobody has changed it.
int keep_memory() {
  std::signal(SIGTERM, [](int) { asked_to_end = true; });
  constexpr std::size_t words = std::size_t{1} << 18;
  const std::unique_ptr<std::uint64_t[]> mine(new std::uint64_t[words]);
  for (std::size_t i = 0; i < words; ++i) mine[i] = i * i;
  MUST(pvas_export("steady", mine.get(), words * sizeof(std::uint64_t)) == 0);
  while (!asked_to_end) {
    for (std::size_t i = 0; i < words; ++i) MUST(mine[i] == i * i);
    std::this_thread::sleep_for(1ms);
  }
  return pvas_tasks(nullptr, 0) == 1 ? 0 : 250;
}

int wait_for_ever() {
  for (;;) pause();
}

int see_steady() {
  void* address = nullptr;
  MUST(pvas_import("steady", 20000, &address, nullptr, nullptr) == 0);
  MUST(static_cast<std::uint64_t*>(address)[9] == 81);
  return 0;
}

const std::map<std::string, int (*)()> works{
    {"change", change}, {"keep", keep_memory}, {"wait", wait_for_ever}, {"see", see_steady}};

// ---- the tests ---------------------------------------------------------------------------------

int spawn_in(pvas_space* space, const char* work, int* task) {
  static const std::string path = own_path();
  char* arguments[] = {const_cast<char*>("worker"), const_cast<char*>(work), nullptr};
  pvas_program program{};
  program.file = path.c_str();
  program.arguments = arguments;
  return pvas_spawn(space, &program, task);
}

void sleep_at_most(std::mt19937& dice, unsigned most_us) {
  std::this_thread::sleep_for(
      std::chrono::microseconds(std::uniform_int_distribution<unsigned>(0, most_us)(dice)));
}

std::string own_sockets() { return "-" + std::to_string(getpid()) + "-"; }

class Kill : public testing::Test {
 protected:
  void SetUp() override { files_ = open_files_of(getpid()); }

  void expect_nothing_left() const {
    EXPECT_TRUE(eventually(no_process_is_left, 20s)) << "there are still" << names_of_children();
    EXPECT_EQ(sockets_named(own_sockets()), 0);
    EXPECT_EQ(open_files_of(getpid()), files_);
  }

 private:
  std::size_t files_ = 0;
};

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

// Kills the first root that this process has, some time after it has appeared.
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

// Every call returns, be it with an error.
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

// ---- who starts tasks --------------------------------------------------------------------------

// As a program that was written for spaces.
[[noreturn]] void be_a_starter() {
  pvas_space* space = nullptr;
  int task = -1;
  if (pvas_create(nullptr, &space) != 0) _exit(1);
  for (int i = 0; i < 2; ++i)
    if (spawn_in(space, "change", &task) != 0) _exit(2);
  pvas_wait(space, task, -1, nullptr);
  _exit(3);
}

// As `shima exec --one-space`: ranks of one launcher, which is this process, meet by its number.
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

// As `shima pvas run`.
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

int main(int argc, char** argv) {
  if (argc == 2 && works.contains(argv[1])) return works.at(argv[1])();
  adopt_orphans();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
