// Whether a process lives, with pidfds and without them.
#include "base/process/process_handle.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <iterator>
#include <tuple>

namespace shima {
namespace {

// A process that lives until end() or until its creator ends.
class Child {
 public:
  Child() {
    if (::pipe(pipe_) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ != 0) return;
    char byte = 0;
    ::close(pipe_[1]);
    std::ignore = ::read(pipe_[0], &byte, 1);
    ::_exit(0);
  }
  // Its parent has not waited for it, so it stays as a zombie.
  void end() {
    siginfo_t ended{};
    ::close(pipe_[1]);
    ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT);
  }
  void forget() const { ::waitpid(pid_, nullptr, 0); }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  int pipe_[2];
  pid_t pid_;
};

void refuse_pidfd_open(int error) {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(steps), steps};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    ::_exit(3);
}

void follow_to_the_end() {
  Child child;
  const auto handle = ProcessHandle::of(child.pid());
  const ProcessIdentity identity = ProcessIdentity::of(child.pid());
  ASSERT_TRUE(handle.has_value()) << handle.error().what;
  EXPECT_FALSE(handle->has_ended());
  EXPECT_FALSE(identity.has_ended());
  child.end();
  EXPECT_TRUE(handle->has_ended());
  EXPECT_TRUE(identity.has_ended());
  child.forget();
  EXPECT_TRUE(handle->has_ended());
  EXPECT_TRUE(identity.has_ended());
  const auto none = ProcessHandle::of(child.pid());
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Code::peer_lost);
}

TEST(ProcessHandle, TellsWhenAProcessEnds) { follow_to_the_end(); }

TEST(ProcessHandle, AReusedIdIsAnotherProcess) {
  ProcessIdentity earlier = ProcessIdentity::own();
  ASSERT_NE(earlier.started_ticks, 0U);
  EXPECT_FALSE(earlier.has_ended());
  --earlier.started_ticks;
  EXPECT_TRUE(earlier.has_ended());
  const auto handle = ProcessHandle::of(earlier);
  ASSERT_FALSE(handle.has_value());
  EXPECT_EQ(handle.error().code, Code::peer_lost);
}

TEST(ProcessHandle, StartTimesOfAnotherTimeNamespaceAreNotCompared) {
  ProcessIdentity elsewhere = ProcessIdentity::own();
  --elsewhere.started_ticks;
  ++elsewhere.clock;
  EXPECT_FALSE(elsewhere.has_ended());
}

// In a child, a filter refuses its system calls from then on.
void follow_without_pidfd(int error) {
  const pid_t child = ::fork();
  if (child == 0) {
    refuse_pidfd_open(error);
    errno = 0;
    if (::syscall(SYS_pidfd_open, ::getpid(), 0) != -1 || errno != error) ::_exit(2);
    follow_to_the_end();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "pidfd_open failed by error " << error;
}

TEST(ProcessHandle, WorksWithoutPidfds) {
  for (const int error : {ENOSYS, EPERM, EMFILE}) follow_without_pidfd(error);
}

// pidfd_open and /proc both need a descriptor, and none may be left.
TEST(ProcessHandle, WorksWithoutDescriptors) {
  Child child;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto handle = ProcessHandle::of(child.pid());
  const bool lives = handle && !handle->has_ended();
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(lives);
  child.end();
  EXPECT_TRUE(handle->has_ended());
  child.forget();
}

}  // namespace
}  // namespace shima
