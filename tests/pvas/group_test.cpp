// TIMEOUT: 240
// Groups of spaces through pvas.h. Each test runs with memory mapped on first touch, and with all
// memory mapped at once.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "calm_clock.h"
#include "pvas/group_workers.h"
#include "pvas/shared/local_socket.h"
#include "pvas/shared/wire.h"
#include "pvas/worker.h"
#include "shima/pvas.h"

namespace {

using namespace std::chrono_literals;

// A handle of a space, and operations on it.
class Space {
 public:
  Space() = default;
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;
  ~Space() { end(); }

  int make(const pvas_options& options) {
    end();
    return pvas_create(&options, &space_);
  }
  void end() {
    pvas_destroy(space_);
    space_ = nullptr;
  }

  int spawn(const char* work) {
    char* arguments[] = {const_cast<char*>("worker"), const_cast<char*>(work), nullptr};
    static const std::string path = own_path();
    pvas_program program{};
    program.file = path.c_str();
    program.arguments = arguments;
    int task = -1;
    EXPECT_EQ(pvas_spawn(space_, &program, &task), 0) << work << ": " << pvas_error_message();
    return task;
  }
  int status_of(int task) {
    int status = -1;
    EXPECT_EQ(pvas_wait(space_, task, 60000, &status), 0) << pvas_error_message();
    return status;
  }
  int run(const char* work) { return status_of(spawn(work)); }
  void kill_task(int task) {
    EXPECT_EQ(pvas_signal(space_, task, SIGKILL), 0);
    status_of(task);
  }
  pid_t root() { return parent_of(pvas_process(space_, spawn("stay"))); }
  pid_t process(int task) { return pvas_process(space_, task); }

 private:
  pvas_space* space_ = nullptr;
};

class Groups : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    static int tests = 0;
    group_ = "test-" + std::to_string(getpid()) + "-" + std::to_string(++tests);
    ASSERT_EQ(a_.make(options(0)), 0) << pvas_error_message();
    ASSERT_EQ(b_.make(options(1)), 0) << pvas_error_message();
  }

  [[nodiscard]] pvas_options options(int slice) const {
    pvas_options wanted{};
    wanted.slice = slice;
    wanted.slices = 2;
    wanted.group = group_.c_str();
    wanted.eager = GetParam() ? 1 : 0;
    return wanted;
  }

  std::string group_;
  Space a_;
  Space b_;
};

INSTANTIATE_TEST_SUITE_P(Lazy, Groups, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Eager, Groups, testing::Values(true));

TEST_P(Groups, ATaskOfOneSpaceFollowsAListOfTheOther) {
  const int builder = b_.spawn("build_and_stay");
  EXPECT_EQ(a_.run("walk"), 0);
  EXPECT_EQ(b_.run("see_walked"), 0);
  EXPECT_EQ(a_.run("free_list"), 0);
  b_.kill_task(builder);
}

TEST_P(Groups, SystemCallsTakeSuchAddresses) {
  const int builder = b_.spawn("build_and_stay");
  EXPECT_EQ(a_.run("system_calls"), 0);
  b_.kill_task(builder);
}

TEST_P(Groups, AnotherProcessReadsSuchMemoryFirst) {
  const int builder = b_.spawn("build_and_stay");
  ASSERT_EQ(a_.run("walk"), 0);  // now there are names, and the list is touched in `a`
  const pid_t reader = a_.process(a_.spawn("stay"));
  std::vector<unsigned char> copy(group_workers::block_bytes);
  // The large block is among the first allocations, and starts at a chunk.
  const auto first = shima::pvas::commons_data_begin;
  std::size_t found = 0;
  for (std::uint64_t at = first; at < first + 20 * group_workers::block_bytes; at += 65536) {
    const iovec here{copy.data(), 65536};
    const iovec there{reinterpret_cast<void*>(at), 65536};
    ASSERT_EQ(process_vm_readv(reader, &here, 1, &there, 1, 0), 65536) << std::strerror(errno);
    bool large = true;
    for (std::size_t i = 0; i < 4096; ++i)
      large = large && copy[i] == group_workers::byte_at(found * 65536 + i);
    if (large) ++found;
  }
  EXPECT_EQ(found, group_workers::large_bytes / 65536);
  b_.kill_task(builder);
}

TEST_P(Groups, TheModeIsSaid) {
  if (GetParam()) {
    EXPECT_EQ(a_.run("is_eager"), 0);
  } else if (geteuid() == 0) {
    EXPECT_EQ(a_.run("is_lazy"), 0);
  }
  Space alone;
  ASSERT_EQ(alone.make({}), 0);
  EXPECT_EQ(alone.run("is_alone"), 0);
}

// How much of the group's memory is mapped in a root, and so in its space.
std::uint64_t mapped_bytes(pid_t root) {
  std::ifstream maps("/proc/" + std::to_string(root) + "/maps");
  std::uint64_t sum = 0;
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    if (line.find("/memfd:shima-pvas") != std::string::npos &&
        std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2 &&
        end > shima::pvas::commons_data_begin)
      sum += end - std::max(begin, shima::pvas::commons_data_begin);
  }
  return sum;
}

TEST_P(Groups, BlocksAreMappedWhereTheyAreTouched) {
  const pid_t root = a_.root();
  const std::uint64_t before = mapped_bytes(root);
  b_.spawn("build_and_stay");
  ASSERT_EQ(a_.run("see_list"), 0);
  const std::uint64_t with_list = mapped_bytes(root);
  ASSERT_EQ(a_.run("system_calls"), 0);
  const std::uint64_t with_large = mapped_bytes(root);
  if (GetParam()) {
    EXPECT_EQ(before, shima::pvas::commons_data_bytes);
    EXPECT_EQ(with_large, before);
  } else {
    EXPECT_EQ(before, 0U);
    EXPECT_EQ(with_list, group_workers::block_bytes);
    EXPECT_GE(with_large, with_list + group_workers::large_bytes);
    EXPECT_LE(with_large, with_list + 3 * group_workers::large_bytes);
  }
}

// While a root is killed, no task reads zeros from memory that is not mapped yet.
TEST_P(Groups, ATaskThatLosesItsRootSeesNoWrongBytes) {
  b_.spawn("sow");
  for (int round = 0; round < 10; ++round) {
    ASSERT_EQ(a_.make(options(0)), 0) << pvas_error_message();
    const pid_t root = a_.root();
    a_.spawn("reap");
    ASSERT_EQ(b_.run("see_reaping"), 0);
    ASSERT_EQ(kill(root, SIGKILL), 0);
    EXPECT_TRUE(eventually([&] { return has_ended(root); }));
    ASSERT_EQ(b_.run("see_no_wrong"), 0) << "in round " << round;
  }
}

TEST_P(Groups, SpacesTakeAndGiveAtOnce) {
  std::vector<int> in_a;
  std::vector<int> in_b;
  for (int i = 0; i < 2; ++i) {
    in_a.push_back(a_.spawn("trade_much"));
    in_b.push_back(b_.spawn("trade_much"));
  }
  for (const int task : in_a) EXPECT_EQ(a_.status_of(task), 0);
  for (const int task : in_b) EXPECT_EQ(b_.status_of(task), 0);
}

TEST_P(Groups, WhoIsKilledWhileItAllocatesStopsNobody) {
  const int trader = a_.spawn("trade_much");
  for (int i = 0; i < 20; ++i) {
    const int victim = b_.spawn("trade_for_ever");
    std::this_thread::sleep_for(std::chrono::milliseconds(3 * i));
    b_.kill_task(victim);
  }
  EXPECT_EQ(a_.status_of(trader), 0);
  EXPECT_EQ(b_.run("trade_much"), 0);
}

TEST_P(Groups, CallsAreRefusedWithAReason) {
  EXPECT_EQ(a_.run("refused_calls"), 0);
  EXPECT_EQ(b_.run("refused_calls"), 0);
  Space other;
  pvas_options wrong = options(1);
  wrong.slices = 4;  // the group has two
  EXPECT_EQ(other.make(wrong), PVAS_ERR_EXISTS);
  wrong.slice = 2;
  EXPECT_EQ(other.make(wrong), PVAS_ERR_ARGUMENT);
  EXPECT_NE(std::strstr(pvas_error_message(), "has 2 slices"), nullptr) << pvas_error_message();
  wrong.slice = 0;
  wrong.slices = 1;
  EXPECT_EQ(other.make(wrong), PVAS_ERR_ARGUMENT);
  wrong = options(0);
  wrong.group = "";
  EXPECT_EQ(other.make(wrong), PVAS_ERR_ARGUMENT);
}

TEST_P(Groups, ASecondHandleIsOfTheSameSpace) {
  Space second;
  ASSERT_EQ(second.make(options(0)), 0) << pvas_error_message();
  EXPECT_EQ(second.root(), a_.root());
}

TEST_P(Groups, PrivateMemoryOfAnotherSpaceIsNotThere) {
  const int shower = b_.spawn("show_private");
  const int status = a_.run("touch_private");
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << status;
  b_.kill_task(shower);
}

TEST_P(Groups, AForkedChildSeesNoWrongBytes) {
  const int builder = b_.spawn("build_and_stay");
  EXPECT_EQ(a_.run("fork_child"), 0);
  b_.kill_task(builder);
}

TEST_P(Groups, WhoDiesWithTheLockOfNamesStopsNobody) {
  const int status = b_.run("die_with_lock");
  EXPECT_TRUE(WIFSIGNALED(status));
  const shima::CalmClock clock;
  EXPECT_EQ(a_.run("share_names"), 0);
  b_.spawn("stay_with_lock");
  const pid_t root = b_.root();
  ASSERT_EQ(kill(root, SIGKILL), 0);
  EXPECT_EQ(a_.run("share_names"), 0);
  EXPECT_LT(clock.elapsed(), 20s) << "it was the time that freed the lock";
}

TEST_P(Groups, OneSpaceOutlivesTheOther) {
  b_.spawn("build_and_stay");
  const int outliver = a_.spawn("outlive");
  ASSERT_EQ(a_.run("see_watching"), 0);
  b_.end();
  EXPECT_EQ(a_.status_of(outliver), 0);
  // Another space takes its place and builds the list again.
  ASSERT_EQ(b_.make(options(1)), 0) << pvas_error_message();
  const int builder = b_.spawn("build_and_stay");
  EXPECT_EQ(a_.run("walk"), 0);
  b_.kill_task(builder);
}

TEST_P(Groups, OneSpaceOutlivesTheOthersRoot) {
  b_.spawn("build_and_stay");
  const pid_t root = b_.root();
  const int outliver = a_.spawn("outlive");
  ASSERT_EQ(a_.run("see_watching"), 0);
  ASSERT_EQ(kill(root, SIGKILL), 0);
  EXPECT_EQ(a_.status_of(outliver), 0);
  ASSERT_EQ(b_.make(options(1)), 0) << pvas_error_message();
  const int again = b_.spawn("build_and_stay");
  EXPECT_EQ(a_.run("walk"), 0);
  b_.kill_task(again);
}

TEST_P(Groups, MemoryGoesWithTheLastSpace) {
  EXPECT_EQ(b_.run("take_first"), 0);
  const pid_t roots[] = {a_.root(), b_.root()};
  a_.end();
  b_.end();
  for (const pid_t root : roots) EXPECT_TRUE(eventually([&] { return has_ended(root); }));
  ASSERT_EQ(a_.make(options(0)), 0) << pvas_error_message();
  EXPECT_EQ(a_.run("take_first"), 0);
}

TEST_P(Groups, SpacesHaveCoresOfTheirOwn) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "there is one core";
  const int cores[] = {0, 1};
  pvas_options bound = options(0);
  bound.core_count = 1;
  bound.cores = &cores[0];
  ASSERT_EQ(a_.make(bound), 0) << pvas_error_message();
  bound.slice = 1;
  bound.cores = &cores[1];
  ASSERT_EQ(b_.make(bound), 0) << pvas_error_message();
  EXPECT_EQ(a_.run("on_core_0"), 0);
  EXPECT_EQ(b_.run("on_core_1"), 0);
}

constexpr uid_t nobody = 65534;

// Runs `body` in a process of another user; returns its result.
int as_nobody(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(setresuid(nobody, nobody, nobody) == 0 ? body() : 99);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The other user's process does not check which user answers.
int ask_for_memory(const std::string& name) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (connect(socket, reinterpret_cast<sockaddr*>(&address), size) != 0) return 1;
  shima::pvas::Message question;
  question.word = shima::pvas::Word::memory;
  const auto sent = shima::pvas::send_message(socket, question);
  if (!sent && sent.error().code != shima::Code::peer_lost) return 2;
  const auto answer = shima::pvas::receive_message(socket);
  return !answer && answer.error().code == shima::Code::peer_lost ? 0 : 3;
}

TEST_P(Groups, AnotherUsersProcessDoesNotGetTheMemory) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string name = shima::pvas::group_memory_name(group_, 0);
  const std::string files = "/proc/" + std::to_string(a_.root()) + "/fd";
  EXPECT_EQ(ask_for_memory(name), 3) << "this user's own process is not answered";
  EXPECT_EQ(as_nobody([&] { return ask_for_memory(name); }), 0);
  EXPECT_EQ(as_nobody([&] {
              const auto refused = shima::pvas::connect_local(name);
              return !refused && refused.error().code == shima::Code::access_denied ? 0 : 1;
            }),
            0);
  EXPECT_EQ(as_nobody([&] { return access(files.c_str(), R_OK) != 0 ? 0 : 1; }), 0);
}

// Another user holds the socket name of another space of the group.
TEST_P(Groups, AnotherUsersProcessIsNotJoined) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  group_ += "-other";
  const std::string name = shima::pvas::group_memory_name(group_, 1);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t impostor = fork();
  if (impostor == 0) {
    if (setresuid(nobody, nobody, nobody) != 0) _exit(1);
    const auto socket = shima::pvas::bind_local(name);
    if (!socket || !shima::pvas::listen_local(*socket)) _exit(2);
    if (write(ready[1], "x", 1) != 1) _exit(3);
    for (;;) pause();
  }
  char byte = 0;
  close(ready[1]);
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  EXPECT_EQ(a_.make(options(0)), PVAS_ERR_ACCESS);
  EXPECT_NE(std::strstr(pvas_error_message(), "65534"), nullptr) << pvas_error_message();
  kill(impostor, SIGKILL);
  waitpid(impostor, nullptr, 0);
  EXPECT_EQ(a_.make(options(0)), 0) << pvas_error_message();
}

// Without privilege the kernel may refuse userfaultfd for system calls; then all memory is mapped
// at once.
TEST_P(Groups, WhoMayNotMapLazilyMapsEagerly) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  std::ifstream setting("/proc/sys/vm/unprivileged_userfaultfd");
  int allowed = 1;
  setting >> allowed;
  if (allowed != 0) GTEST_SKIP() << "any user may map lazily here";
  const int outcome = as_nobody([&] {
    if (access(own_path().c_str(), X_OK) != 0) return 77;
    Space space;
    if (space.make(options(0)) != 0) return 1;
    return space.run("is_eager") == 0 ? 0 : 2;
  });
  if (outcome == 77) GTEST_SKIP() << "another user cannot execute this program";
  EXPECT_EQ(outcome, 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && group_workers::works.contains(argv[1]))
    return group_workers::works.at(argv[1])();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
