#include "pvas/root/server/self_test.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>

#include "pvas/root/inside/checks.h"

namespace shima::pvas {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds time_for_a_probe{20};

std::string probe_path() {
  std::array<char, PATH_MAX> own{};
  const ssize_t size = ::readlink("/proc/self/exe", own.data(), own.size() - 1);
  const std::string path(own.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return path.substr(0, path.rfind('/') + 1) + "pvas-probe";
}

std::string words_for(int status) {
  if (WIFSIGNALED(status))
    return "a program was ended by signal " + std::to_string(WTERMSIG(status));
  switch (WEXITSTATUS(status)) {
    case SHIMA_CHECK_CONTROL:
      return "the auxiliary vector does not lead to the partition";
    case SHIMA_CHECK_BREAK:
      return "the program break does not stay in the partition";
    case SHIMA_CHECK_MALLOC:
      return "malloc does not stay in the partition";
    case SHIMA_CHECK_MMAP:
      return "mmap does not stay in the partition";
    case SHIMA_CHECK_MREMAP:
      return "mremap does not stay in the partition";
    case SHIMA_CHECK_STACK:
      return "stacks of threads are outside the partition";
    case SHIMA_CHECK_ORIGIN:
      return "$ORIGIN is not the program's directory";
    case SHIMA_CHECK_SELF:
      return "/proc/self/exe is not the program";
    default:
      return "a program does not start (memory or its libraries are missing)";
  }
}

SpawnOrder order_for(const std::string& probe) {
  SpawnOrder order;
  order.file = probe;
  order.shown = probe;
  order.name = "pvas-probe";
  order.arguments = {probe};
  for (unsigned i = 0; i < order.limits.size(); ++i)
    ::getrlimit(static_cast<__rlimit_resource>(i), &order.limits[i]);
  return order;
}

Result<int> wait_for(Space& space, pid_t pid) {
  const auto deadline = Clock::now() + time_for_a_probe;
  while (Clock::now() < deadline) {
    for (const Change& change : space.take_changes()) {
      if (change.pid != pid) continue;
      if (!change.failure.empty()) return fail(Code::unsupported_operation, change.failure);
      return change.status;
    }
    ::poll(nullptr, 0, 1);
  }
  space.signal(pid, SIGKILL);
  return fail(Code::timed_out, "the self-test did not end in time");
}

}  // namespace

Status run_self_test(Space& space) {
  const UniqueFd directory(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return fail_errno(errno, "opening /");
  const auto started = space.start(order_for(probe_path()), directory, {});
  if (!started) return std::unexpected(started.error());
  const auto ended = wait_for(space, started->pid);
  space.let_go(started->task);
  SHIMA_TRY_ASSIGN(const int status, ended);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (WIFEXITED(status) && WEXITSTATUS(status) == SHIMA_CHECK_UNKNOWN)
    return fail(Code::no_memory, "testing whether one address space works", ENOMEM);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
    return fail(Code::peer_lost,
                "the process that tests whether one address space works was killed");
  return fail(Code::unsupported_operation,
              "one address space does not work with this libc: " + words_for(status));
}

}  // namespace shima::pvas
