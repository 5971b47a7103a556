// TIMEOUT: 240
// Spaces and tasks through pvas.h. The test program is its own worker (space_workers.h): it is
// started as a task with the name of a role.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "pvas/aftermath.h"
#include "pvas/launch/root_process.h"
#include "pvas/shared/wire.h"
#include "pvas/space_workers.h"
#include "pvas/worker.h"
#include "shima/pvas.h"

namespace {

using namespace std::chrono_literals;

class Spaces : public testing::Test {
 protected:
  void SetUp() override { make({}); }
  void TearDown() override { pvas_destroy(space_); }

  void make(const pvas_options& options) {
    pvas_destroy(space_);
    ASSERT_EQ(pvas_create(&options, &space_), 0) << pvas_error_message();
  }

  int spawn(const char* work, pvas_program program = {}) {
    char* arguments[] = {const_cast<char*>("worker"), const_cast<char*>(work), nullptr};
    static const std::string path = own_path();
    program.file = path.c_str();
    program.arguments = arguments;
    int task = -1;
    EXPECT_EQ(pvas_spawn(space_, &program, &task), 0) << pvas_error_message();
    return task;
  }

  int status_of(int task, int limit_ms = 20000) {
    int status = -1;
    EXPECT_EQ(pvas_wait(space_, task, limit_ms, &status), 0) << pvas_error_message();
    return status;
  }

  std::string maps_of_root(int task) {
    return "/proc/" + std::to_string(parent_of(pvas_process(space_, task))) + "/maps";
  }

  pvas_space* space_ = nullptr;
};

TEST_F(Spaces, OneTaskWalksAnothersList) {
  const int shower = spawn("show_list");
  const int walker = spawn("walk_list");
  EXPECT_NE(shower, walker);
  EXPECT_EQ(status_of(walker), 0);
  EXPECT_EQ(status_of(shower), 0);
}

TEST_F(Spaces, EverythingOfATaskIsInItsPartition) {
  std::vector<int> tasks;
  for (int i = 0; i < 4; ++i) tasks.push_back(spawn("own_memory"));
  for (const int task : tasks) EXPECT_EQ(status_of(task), 0);
}

TEST_F(Spaces, ATaskHasItsOwnProgramBreak) {
  for (const int task : {spawn("own_heap"), spawn("own_heap")}) EXPECT_EQ(status_of(task), 0);
}

TEST_F(Spaces, NobodyMovesTheRootsBreak) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status_of(spawn("kernels_break")), 0);
}

TEST_F(Spaces, ATaskIsAProcess) {
  const int one = spawn("wait");
  const int other = spawn("wait");
  EXPECT_NE(pvas_process(space_, one), pvas_process(space_, other));
  EXPECT_EQ(parent_of(pvas_process(space_, one)), parent_of(pvas_process(space_, other)));
  int status = 0;
  EXPECT_EQ(pvas_wait(space_, one, 20, &status), PVAS_ERR_TIMEOUT);
  EXPECT_EQ(pvas_signal(space_, one, SIGTERM), 0);
  status = status_of(one);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  EXPECT_EQ(kill(pvas_process(space_, other), 0), 0);
  EXPECT_EQ(pvas_wait(space_, one, 0, &status), PVAS_ERR_LOST);
}

TEST_F(Spaces, SeveralThreadsWaitForOneTask) {
  const int task = spawn("wait");
  std::vector<std::thread> waiters;
  std::atomic<int> told = 0;
  for (int i = 0; i < 4; ++i)
    waiters.emplace_back([&, i] {
      int status = 0;
      const int result = pvas_wait(space_, task, i % 2 == 0 ? -1 : 20000, &status);
      if (result == 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) {
        ++told;
      } else {
        EXPECT_EQ(result, PVAS_ERR_LOST);  // a waiter that arrives after the end
      }
    });
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(pvas_wait(space_, task, 20, nullptr), PVAS_ERR_TIMEOUT);
  EXPECT_EQ(pvas_signal(space_, task, SIGTERM), 0);
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_GT(told, 0);
}

TEST_F(Spaces, Inherits) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  ASSERT_EQ(write(pipe_ends[1], "x", 1), 1);
  char* environment[] = {const_cast<char*>("PVAS_TEST=1"), nullptr};
  const std::array<pvas_file, 2> files{{{pipe_ends[0], 7}, {2, 2}}};
  const int core = 0;
  pvas_program program{};
  program.environment = environment;
  program.folder = "/";
  program.files = files.data();
  program.file_count = files.size();
  program.cores = &core;
  program.core_count = 1;
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{333, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  const mode_t mask = umask(027);
  std::signal(SIGUSR2, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGWINCH);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  const int task = spawn("inherits", program);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  std::signal(SIGUSR2, SIG_DFL);
  umask(mask);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(status_of(task), 0);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST_F(Spaces, WhoIgnoresTheEndsOfChildrenLearnsThoseOfTasks) {
  std::signal(SIGCHLD, SIG_IGN);
  make({});
  const int status = status_of(spawn("nothing"), guard_ms);
  std::signal(SIGCHLD, SIG_DFL);
  EXPECT_EQ(status, 0);
}

TEST_F(Spaces, TheOthersLiveOnAfterACrash) {
  const int shower = spawn("show_list");
  for (int i = 0; i < 3; ++i) {
    const int status = status_of(spawn("crash"));
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
  }
  EXPECT_EQ(status_of(spawn("walk_list")), 0);
  EXPECT_EQ(status_of(shower), 0);
}

TEST_F(Spaces, AKilledTaskLeavesNoMappings) {
  const int stays = spawn("wait");
  const std::string maps = maps_of_root(stays);
  ASSERT_EQ(status_of(spawn("see_waiting")), 0);
  const int before = lines_of(maps);
  for (int i = 0; i < 50; ++i) {
    const int task = spawn("own_memory");  // killed in the middle of mapping and unmapping
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 10));
    ASSERT_EQ(pvas_signal(space_, task, SIGKILL), 0);
    status_of(task);
  }
  EXPECT_TRUE(eventually([&] { return lines_of(maps) <= before + 8; }))
      << before << " mappings became " << lines_of(maps);
}

TEST_F(Spaces, WhoExecutesAnotherProgramLeaves) {
  const int stays = spawn("wait");
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const std::array<pvas_file, 1> files{{{pipe_ends[0], 0}}};
  pvas_program program{};
  program.files = files.data();
  program.file_count = files.size();
  const std::string maps = maps_of_root(stays);
  ASSERT_EQ(status_of(spawn("see_waiting")), 0);
  const int before = lines_of(maps);
  const int task = spawn("exec", program);
  close(pipe_ends[0]);
  EXPECT_GT(lines_of(maps), before);
  EXPECT_TRUE(eventually([&] { return lines_of(maps) <= before; }));
  close(pipe_ends[1]);
  const int status = status_of(task);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 6);
}

TEST_F(Spaces, MemoryThatIsHeldStays) {
  const int holder = spawn("hold");
  const int held = spawn("held");
  const int status = status_of(held);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(status_of(holder), 0);
}

TEST_F(Spaces, Names) {
  EXPECT_EQ(status_of(spawn("names")), 0);
  EXPECT_EQ(status_of(spawn("names")), 0) << "the name of a task that has ended is not free";
}

TEST_F(Spaces, WhoDiesWithTheLockStopsNobody) {
  const int status = status_of(spawn("lock"));
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(status_of(spawn("names"), guard_ms), 0);
}

TEST_F(Spaces, ATaskStartsATask) { EXPECT_EQ(status_of(spawn("spawn")), 0); }

TEST_F(Spaces, AForkedChildIsNoTask) { EXPECT_EQ(status_of(spawn("fork")), 0); }

TEST_F(Spaces, ASpaceIsFullAtSomeTime) {
  pvas_options last{};
  last.slice = 7;
  last.slices = 8;
  make(last);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(spawn("wait"), i);
  pvas_program program{};
  const std::string path = own_path();
  program.file = path.c_str();
  int task = -1;
  EXPECT_EQ(pvas_spawn(space_, &program, &task), PVAS_ERR_NO_MEMORY);
  EXPECT_NE(std::string(pvas_error_message()).find("full"), std::string::npos);
  pvas_signal(space_, 20, SIGKILL);
  status_of(20);
  EXPECT_EQ(spawn("wait"), 20);
}

TEST_F(Spaces, WithoutTheRootThereAreNoTasks) {
  const int task = spawn("wait");
  const pid_t process = pvas_process(space_, task);
  ASSERT_EQ(kill(parent_of(process), SIGKILL), 0);
  int status = 0;
  EXPECT_EQ(pvas_wait(space_, task, guard_ms, &status), PVAS_ERR_LOST);
  EXPECT_TRUE(eventually([&] { return kill(process, 0) != 0 || parent_of(process) == 0; }));
  pvas_program program{};
  program.file = "/bin/true";
  int other = 0;
  EXPECT_LT(pvas_spawn(space_, &program, &other), 0);
}

TEST_F(Spaces, DestroyingASpaceEndsItsTasksAndItsRoot) {
  const pid_t task = pvas_process(space_, spawn("wait"));
  const pid_t root = parent_of(task);
  pvas_destroy(space_);
  space_ = nullptr;
  EXPECT_TRUE(eventually([&] { return has_ended(task) && has_ended(root); }));
}

TEST_F(Spaces, RefusesWithAReason) {
  pvas_program program{};
  int task = -1;
  program.file = "no-such-program";
  EXPECT_EQ(pvas_spawn(space_, &program, &task), PVAS_ERR_NO_SUCH_FILE);
  program.file = "/etc/passwd";
  EXPECT_EQ(pvas_spawn(space_, &program, &task), PVAS_ERR_ACCESS);
  EXPECT_EQ(pvas_spawn(space_, nullptr, &task), PVAS_ERR_ARGUMENT);
  pvas_options wrong{};
  wrong.slice = 3;
  wrong.slices = 2;
  pvas_space* other = nullptr;
  EXPECT_EQ(pvas_create(&wrong, &other), PVAS_ERR_ARGUMENT);
  EXPECT_EQ(pvas_self(), PVAS_ERR_NOT_A_TASK);
  EXPECT_EQ(pvas_own(&other), PVAS_ERR_NOT_A_TASK);
  EXPECT_EQ(task, -1);
}

// The name of a space's socket, as visible to all users in /proc/net/unix.
std::string some_socket_name() {
  std::ifstream sockets("/proc/net/unix");
  const std::string wanted = "@" + shima::pvas::socket_name_for(std::to_string(getpid()) + "-");
  for (std::string line; std::getline(sockets, line);)
    if (const auto at = line.find(wanted); at != std::string::npos) return line.substr(at + 1);
  return {};
}

TEST_F(Spaces, AnotherUsersProcessIsNotServed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  spawn("wait");
  const std::string name = some_socket_name();
  ASSERT_FALSE(name.empty());
  const pid_t child = fork();
  if (child == 0) {
    if (setresuid(65534, 65534, 65534) != 0) _exit(1);
    if (shima::pvas::connect_root(name).error().code != shima::Code::access_denied) _exit(2);
    // Also for a client that does not check which user answers.
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (connect(socket, reinterpret_cast<sockaddr*>(&address), size) != 0) _exit(3);
    const auto sent = shima::pvas::send_message(socket, shima::pvas::Message{});
    const auto answer = shima::pvas::receive_message(socket);
    _exit(!answer && answer.error().code == shima::Code::peer_lost && (sent || true) ? 0 : 4);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && space_workers::works.contains(argv[1]))
    return space_workers::works.at(argv[1])();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
