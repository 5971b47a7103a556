// A child process performs one operation on striped files, and is killed by SIGKILL before its
// first modifying system call, in the next round before its second, and so on until it completes;
// then again at random moments. Afterwards the metadata must be the old or the new, bytes outside a
// write's range unchanged, and fsck --repair must leave no stray file.
//
// Defines system calls: include it in one source of a program.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <thread>

#include "striped_world.h"

// --- system calls, counted ----------------------------------------------------------------------

namespace {

long calls_to_live = -1;  // -1: not counted

void come_to_call() {
  if (calls_to_live == 0) ::kill(::getpid(), SIGKILL);
  if (calls_to_live > 0) --calls_to_live;
}

template <class... Arguments>
long changing(long number, Arguments... arguments) {
  come_to_call();
  return ::syscall(number, arguments...);
}

}  // namespace

// The store, linked into this program, calls these instead of the C library's.
extern "C" {
int openat(int directory, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const unsigned mode = (flags & O_CREAT) != 0 ? va_arg(more, unsigned) : 0;
  va_end(more);
  if ((flags & (O_CREAT | O_TRUNC)) != 0) come_to_call();
  return static_cast<int>(::syscall(SYS_openat, directory, path, flags, mode));
}
int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const unsigned mode = (flags & O_CREAT) != 0 ? va_arg(more, unsigned) : 0;
  va_end(more);
  return openat(AT_FDCWD, path, flags, mode);
}
ssize_t write(int fd, const void* data, size_t len) { return changing(SYS_write, fd, data, len); }
ssize_t pwrite(int fd, const void* data, size_t len, off_t at) {
  return changing(SYS_pwrite64, fd, data, len, at);
}
int rename(const char* from, const char* to) noexcept {
  return static_cast<int>(changing(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int renameat(int a, const char* from, int b, const char* to) noexcept {
  return static_cast<int>(changing(SYS_renameat2, a, from, b, to, 0));
}
int link(const char* from, const char* to) noexcept {
  return static_cast<int>(changing(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int linkat(int a, const char* from, int b, const char* to, int flags) noexcept {
  return static_cast<int>(changing(SYS_linkat, a, from, b, to, flags));
}
int unlink(const char* path) noexcept {
  return static_cast<int>(changing(SYS_unlinkat, AT_FDCWD, path, 0));
}
int unlinkat(int directory, const char* path, int flags) noexcept {
  return static_cast<int>(changing(SYS_unlinkat, directory, path, flags));
}
int ftruncate(int fd, off_t size) noexcept {
  return static_cast<int>(changing(SYS_ftruncate, fd, size));
}
int mkdirat(int directory, const char* path, mode_t mode) noexcept {
  return static_cast<int>(changing(SYS_mkdirat, directory, path, mode));
}
int chmod(const char* path, mode_t mode) noexcept {
  return static_cast<int>(changing(SYS_fchmodat, AT_FDCWD, path, mode));
}
int fchmod(int fd, mode_t mode) noexcept {
  return static_cast<int>(changing(SYS_fchmod, fd, mode));
}
int fchmodat(int directory, const char* path, mode_t mode, int) noexcept {
  return static_cast<int>(changing(SYS_fchmodat, directory, path, mode));
}
}
namespace shima {

class StripedKill : public StripedWorld {
 protected:
  enum class End { killed, lived };
  // The child is killed after `calls` modifying calls, or after `time`.
  End in_child(const std::function<Status()>& work, long calls,
               std::optional<std::chrono::microseconds> time = {}) {
    const pid_t child = ::fork();
    if (child == 0) {
      calls_to_live = calls;
      const Status status = work();
      calls_to_live = -1;
      if (!status) std::fprintf(stderr, "child: %s\n", describe(status.error()).c_str());
      ::_exit(status ? 0 : 1);
    }
    if (time) std::this_thread::sleep_for(*time);
    if (time) ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) return End::killed;
    EXPECT_EQ(WEXITSTATUS(status), 0);
    return End::lived;
  }

  struct Case {
    std::function<void()> prepare;
    std::function<Status()> work;
    std::function<void()> check;  // after the kill: the old state or the new
  };
  void at_every_call(const Case& one) {
    End end = End::killed;
    for (long calls = 0; end == End::killed && !HasFailure(); ++calls) {
      SCOPED_TRACE("killed before changing call " + std::to_string(calls));
      round(one, calls, [&] { end = in_child(one.work, calls); });
      ++kills;
      ASSERT_LT(calls, 2000);
    }
    std::printf("%ld kills\n", kills);
  }
  void at_random_times(const Case& one, int rounds) {
    round(one, 0, [&] { in_child(one.work, -1); });
    new_world();
    one.prepare();
    const auto ready = std::chrono::steady_clock::now();
    in_child(one.work, -1);
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - ready);
    std::mt19937 random(11);
    for (int i = 0; i < rounds && !HasFailure(); ++i) {
      const std::chrono::microseconds time(
          static_cast<long>(random() % static_cast<unsigned long>(took.count() + 1)));
      SCOPED_TRACE("killed after " + std::to_string(time.count()) + " us");
      round(one, i, [&] { in_child(one.work, -1, time); });
    }
  }
  // The result must not depend on whether an open or fsck comes first.
  void round(const Case& one, long number, const std::function<void()>& run) {
    new_world();
    one.prepare();
    run();
    if (number % 2 == 0) one.check();
    expect_tidy();
    one.check();
  }

  long kills = 0;
};

inline const Bytes x = some_bytes(40000, 1);
inline const Bytes y = some_bytes(23456, 2);

}  // namespace shima
