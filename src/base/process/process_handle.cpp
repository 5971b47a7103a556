#include "base/process/process_handle.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace shima {
namespace {

struct ProcessFacts {
  char state = 0;
  long threads = 0;
  std::uint64_t started_ticks = 0;
};

// Parses a whole word as a number.
template <class Number>
bool parse_number(std::string_view word, Number& number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size();
}

// The text of /proc/PID/stat (proc(5)). The program's name, in parentheses, may contain anything;
// the words after it are counted from the state.
std::optional<ProcessFacts> parse_facts(std::string_view text) {
  constexpr int threads_word = 17;
  constexpr int started_word = 19;
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return {};
  text.remove_prefix(name_end + 1);
  ProcessFacts facts;
  for (int i = 0; i <= started_word; ++i) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const std::string_view word = text.substr(0, text.find(' '));
    if (word.empty()) return {};
    if (i == 0) facts.state = word.front();
    if (i == threads_word && !parse_number(word, facts.threads)) return {};
    if (i == started_word && !parse_number(word, facts.started_ticks)) return {};
    text.remove_prefix(word.size());
  }
  return facts;
}

// A /proc of another PID namespace shows other processes under these IDs.
bool proc_shows_own_namespace() {
  std::array<char, 32> text{};
  const ssize_t len = ::readlink("/proc/self", text.data(), text.size());
  pid_t shown = 0;
  return len > 0 && parse_number({text.data(), static_cast<std::size_t>(len)}, shown) &&
         shown == ::getpid();
}

// Allocates nothing: callers are between two meetings of a collective call.
std::optional<ProcessFacts> read_facts(pid_t pid) {
  if (!proc_shows_own_namespace()) return {};
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", static_cast<int>(pid));
  const UniqueFd file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text{};
  if (!file) return {};
  const ssize_t len = ::read(file.get(), text.data(), text.size());
  if (len <= 0) return {};
  return parse_facts({text.data(), static_cast<std::size_t>(len)});
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
    return fail_errno(error, "watching " + who + ": it is a thread, or not a process ID");
  if (!handle.pidfd_ && error == ESRCH) return fail(Code::peer_lost, "there is no " + who);
  // The process may have ended, and another have got its ID, before the pidfd was opened.
  if (identity.has_ended()) return fail(Code::peer_lost, who + " has ended");
  return handle;
}

ProcessHandle ProcessHandle::anyway(const ProcessIdentity& identity) {
  auto handle = of(identity);
  return handle ? *std::move(handle) : without_descriptor(identity);
}

ProcessHandle ProcessHandle::without_descriptor(const ProcessIdentity& identity) {
  ProcessHandle handle;
  handle.identity_ = identity;
  return handle;
}

bool ProcessHandle::has_ended() const {
  return pidfd_ ? has_exited(pidfd_) : identity_.has_ended();
}

}  // namespace shima
