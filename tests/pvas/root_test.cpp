// TIMEOUT: 120
// A root with misbehaving clients, or without memory or descriptors. The test program is its own
// worker (worker.h).
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <map>

#include "pvas/aftermath.h"
#include "pvas/launch/program.h"
#include "pvas/launch/root_process.h"
#include "pvas/launch/spawn.h"
#include "shima/pvas.h"

namespace {

using namespace std::chrono_literals;

int nothing() { return 0; }

int wait_for_ever() {
  for (;;) pause();
}

// Allocates all memory, also memory that others free.
int eat() {
  for (std::size_t size = std::size_t{1} << 30;;) {
    if (mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) !=
        MAP_FAILED)
      continue;
    if (size > 4096) {
      size /= 2;
    } else {
      std::this_thread::sleep_for(1ms);
    }
  }
}

const std::map<std::string, int (*)()> works{
    {"nothing", nothing}, {"wait", wait_for_ever}, {"eat", eat}};

// ---- the tests ---------------------------------------------------------------------------------

int spawn_in(pvas_space* space, const char* work, int* task) {
  static const std::string path = own_path();
  char* arguments[] = {const_cast<char*>("worker"), const_cast<char*>(work), nullptr};
  pvas_program program{};
  program.file = path.c_str();
  program.arguments = arguments;
  return pvas_spawn(space, &program, task);
}

int status_of(pvas_space* space, int task) {
  int status = -1;
  EXPECT_EQ(pvas_wait(space, task, 20000, &status), 0) << pvas_error_message();
  return status;
}

TEST(Root, WhoDoesNotListenStopsNobody) {
  pvas_space* space = nullptr;
  int silent = -1;
  int task = -1;
  ASSERT_EQ(pvas_create(nullptr, &space), 0) << pvas_error_message();
  ASSERT_EQ(spawn_in(space, "wait", &silent), 0) << pvas_error_message();
  const pid_t process = pvas_process(space, silent);
  const auto is_stopped = [&](bool wanted) {
    std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
    std::string text;
    std::getline(stat, text);
    return (text.find(") T") != std::string::npos) == wanted;
  };
  // More messages than a connection can queue.
  for (int i = 0; i < 400; ++i) {
    ASSERT_EQ(kill(process, i % 2 == 0 ? SIGSTOP : SIGCONT), 0);
    ASSERT_TRUE(eventually([&] { return is_stopped(i % 2 == 0); }));
    if (i % 2 != 0) continue;
    ASSERT_EQ(spawn_in(space, "nothing", &task), 0) << pvas_error_message();
    ASSERT_EQ(status_of(space, task), 0) << i;
  }
  ASSERT_EQ(kill(process, SIGKILL), 0);
  ASSERT_EQ(spawn_in(space, "nothing", &task), 0) << pvas_error_message();
  ASSERT_EQ(status_of(space, task), 0);
  const int status = status_of(space, silent);  // is reported after all earlier reports
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  pvas_destroy(space);
}

// In a separate process, because limits cannot be raised again.
int within(rlim_t limit_bytes, int (*body)()) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{limit_bytes, limit_bytes};
    _exit(setrlimit(RLIMIT_AS, &limit) == 0 ? body() : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : status;
}

// The root of the only space that this process has created.
std::string own_socket_name() {
  std::ifstream sockets("/proc/net/unix");
  const std::string wanted = "@" + shima::pvas::socket_name_for(std::to_string(getpid()) + "-");
  for (std::string line; std::getline(sockets, line);)
    if (const auto at = line.find(wanted); at != std::string::npos) return line.substr(at + 1);
  return {};
}

bool says(const char* words) { return std::strstr(pvas_error_message(), words) != nullptr; }

// Whether a task was refused with a message. With a little memory left, it may have started and
// then failed.
bool is_refused(pvas_space* space) {
  int task = -1;
  const int started = spawn_in(space, "nothing", &task);
  if (started == 0) status_of(space, task);
  EXPECT_TRUE(started == 0 || (started == PVAS_ERR_NO_MEMORY && says("memory")))
      << started << ' ' << pvas_error_message();
  return started != 0;
}

// More connections than possible: the excess ones are refused, nothing worse.
void crowd(const std::string& socket_name) {
  std::vector<shima::UniqueFd> sockets;
  for (int i = 0; i < 3000; ++i) {
    auto socket = shima::pvas::connect_root(socket_name);
    ASSERT_TRUE(socket.has_value()) << i << describe(socket.error());
    const auto kept = shima::pvas::keep_root(*socket);
    if (kept) {
      sockets.push_back(*std::move(socket));
      continue;
    }
    EXPECT_TRUE(kept.error().code == shima::Code::no_memory ||
                kept.error().code == shima::Code::peer_lost)
        << i << describe(kept.error());
  }
  std::fprintf(stderr, "%zu of 3000 were kept\n", sockets.size());
}

int use_without_memory() {
  pvas_space* space = nullptr;
  int eater = -1;
  int task = -1;
  MUST(pvas_create(nullptr, &space) == 0);
  MUST(spawn_in(space, "eat", &eater) == 0);
  MUST(eventually([&] { return is_refused(space); }));
  for (int i = 0; i < 100; ++i) is_refused(space);
  crowd(own_socket_name());
  MUST(pvas_signal(space, eater, SIGKILL) == 0 && status_of(space, eater) == SIGKILL);
  MUST(spawn_in(space, "nothing", &task) == 0 && status_of(space, task) == 0);
  pvas_destroy(space);
  return testing::Test::HasFailure() ? 1 : 0;
}

TEST(Root, WithoutMemoryATaskIsRefusedAndTheOthersLiveOn) {
  EXPECT_EQ(within(rlim_t{4} << 30, use_without_memory), 0);
}

// With any limit, the calls report that there is no memory, or succeed.
int use_a_little() {
  pvas_space* space = nullptr;
  int task = -1;
  if (pvas_create(nullptr, &space) != 0) return says("memory") ? 100 : 101;
  if (spawn_in(space, "nothing", &task) != 0) return says("memory") ? 102 : 103;
  const int status = status_of(space, task);
  return status == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 127) ? 0 : 104;
}

TEST(Root, WithoutMemoryThereIsAnErrorAndNoWait) {
  for (rlim_t mib = 2; mib < 160; mib += 2) {
    const int outcome = within(mib << 20, use_a_little);
    EXPECT_TRUE(outcome == 0 || outcome == 100 || outcome == 102)
        << outcome << " with " << mib << " MiB";
  }
}

// Creates a space with a low limit of files, reports that, and keeps it until the other end closes.
int keep_space_of_few_files(int said) {
  const rlimit few{48, 48};
  pvas_space* space = nullptr;
  char end = 0;
  MUST(setrlimit(RLIMIT_NOFILE, &few) == 0);
  MUST(pvas_create(nullptr, &space) == 0);
  const std::string name = own_socket_name();
  MUST(write(said, name.c_str(), name.size()) == static_cast<ssize_t>(name.size()));
  MUST(read(said, &end, 1) == 0);
  pvas_destroy(space);
  return 0;
}

// A task needs more descriptors than a connection: it is refused with a message until enough are
// free.
void start_once_there_is_room(const std::string& name, std::vector<shima::UniqueFd>& kept) {
  const std::string file = own_path();
  const auto program = shima::pvas::find_program(file, {file, "nothing"});
  ASSERT_TRUE(program.has_value());
  const auto request = shima::pvas::like_this_process(*program);
  ASSERT_TRUE(request.has_value());
  for (;; kept.pop_back()) {
    ASSERT_FALSE(kept.empty());
    auto socket = shima::pvas::connect_root(name);
    ASSERT_TRUE(socket.has_value()) << describe(socket.error());
    const auto task = shima::pvas::StartedTask::start(*std::move(socket), *request);
    if (task) return;
    EXPECT_EQ(task.error().sys_errno, EMFILE) << describe(task.error());
  }
}

TEST(Root, WithoutFileNumbersWhoComesIsRefusedAndNobodyWaits) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const pid_t keeper = fork();
  if (keeper == 0) {
    close(ends[0]);
    _exit(keep_space_of_few_files(ends[1]));
  }
  close(ends[1]);
  char name[128] = "";
  ASSERT_GT(read(ends[0], name, sizeof name - 1), 0);
  std::size_t refused = 0;
  for (int round = 0; round < 3; ++round) {
    std::vector<shima::UniqueFd> kept;
    for (int i = 0; i < 100; ++i) {
      auto socket = shima::pvas::connect_root(name);
      ASSERT_TRUE(socket.has_value()) << describe(socket.error());
      const auto answer = shima::pvas::keep_root(*socket);
      if (answer) {
        kept.push_back(*std::move(socket));
        continue;
      }
      ++refused;
      EXPECT_NE(describe(answer.error()).find("limit of open files"), std::string::npos)
          << describe(answer.error());
    }
    EXPECT_GT(kept.size(), 10U);  // also after those of the round before have left
    start_once_there_is_room(name, kept);
  }
  EXPECT_GT(refused, 100U);
  close(ends[0]);
  int status = -1;
  waitpid(keeper, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && works.contains(argv[1])) return works.at(argv[1])();
  adopt_orphans();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
