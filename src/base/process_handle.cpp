#include "base/process_handle.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

namespace shima {
namespace {

struct ProcessFacts {
  char state = 0;
  long threads = 0;
  std::uint64_t started_ticks = 0;
};

// The text of /proc/PID/stat. The program's name, in parentheses, may contain anything.
std::optional<ProcessFacts> parse_facts(const char* text) {
  const char* rest = std::strrchr(text, ')');
  ProcessFacts facts;
  unsigned long long started = 0;
  if (rest == nullptr ||
      std::sscanf(
          rest + 1,
          " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld %*s %llu",
          &facts.state, &facts.threads, &started) != 3)
    return {};
  facts.started_ticks = started;
  return facts;
}

// A /proc of another PID namespace shows other processes under these IDs.
bool proc_shows_own_namespace() {
  std::array<char, 32> text{};
  return ::readlink("/proc/self", text.data(), text.size() - 1) > 0 &&
         std::atol(text.data()) == ::getpid();
}

// Allocates nothing: callers are between two meetings of a collective call.
std::optional<ProcessFacts> read_facts(pid_t pid) {
  if (!proc_shows_own_namespace()) return {};
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", static_cast<int>(pid));
  const UniqueFd file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text{};
  if (!file || ::read(file.get(), text.data(), text.size() - 1) <= 0) return {};
  return parse_facts(text.data());
}

// Start times are shown relative to the reader's time namespace.
std::uint64_t own_clock() {
  struct stat facts{};
  return ::stat("/proc/self/ns/time", &facts) == 0 ? facts.st_ino : 0;
}

bool has_no_such_process(pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

UniqueFd open_pidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool has_exited(const UniqueFd& pidfd) {
  pollfd exited{pidfd.get(), POLLIN, 0};
  return ::poll(&exited, 1, 0) == 1;
}

}  // namespace

ProcessIdentity ProcessIdentity::own() { return of(::getpid()); }

ProcessIdentity ProcessIdentity::of(pid_t pid) {
  const auto facts = read_facts(pid);
  return {pid, facts ? facts->started_ticks : 0, own_clock()};
}

bool ProcessIdentity::has_ended() const {
  if (has_no_such_process(pid)) return true;
  const auto facts = read_facts(pid);
  if (!facts) {
    const UniqueFd pidfd = open_pidfd(pid);
    return pidfd && has_exited(pidfd);
  }
  if (started_ticks != 0 && facts->started_ticks != started_ticks && clock == own_clock())
    return true;
  // The first thread of a process may end before the others.
  return facts->state == 'X' || (facts->state == 'Z' && facts->threads <= 1);
}

Result<ProcessHandle> ProcessHandle::of(pid_t pid) { return of(ProcessIdentity::of(pid)); }

Result<ProcessHandle> ProcessHandle::of(const ProcessIdentity& identity) {
  ProcessHandle handle;
  handle.identity_ = identity;
  handle.pidfd_ = open_pidfd(identity.pid);
  const int error = errno;
  const std::string who = "process " + std::to_string(identity.pid);
  if (!handle.pidfd_ && error == EINVAL)
    return fail_errno(error, "watching " + who + ": it is a thread, or no process ID");
  if (!handle.pidfd_ && error == ESRCH) return fail(Code::peer_lost, "there is no " + who);
  // The process may have ended, and another have got its ID, before the pidfd was opened.
  if (identity.has_ended()) return fail(Code::peer_lost, who + " has ended");
  return handle;
}

bool ProcessHandle::has_ended() const {
  return pidfd_ ? has_exited(pidfd_) : identity_.has_ended();
}

}  // namespace shima
