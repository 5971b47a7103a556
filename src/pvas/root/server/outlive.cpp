#include "pvas/root/server/outlive.h"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>

#include "pvas/root/inside/bare.h"

namespace shima::pvas {
namespace {

constexpr std::size_t stack_bytes = std::size_t{16} << 10;

// Runs with the root's thread pointer, and so makes bare system calls only.
int wait_for_end(void* root) {
  bare::call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  bare::call(SYS_prctl, PR_SET_NAME, bare::word("pvas-files"));
  while (bare::call(SYS_getppid) == *static_cast<const pid_t*>(root)) bare::call(SYS_pause);
  return 0;
}

}  // namespace

Status outlive_root() {
  alignas(16) static std::array<std::byte, stack_bytes> stack;
  static pid_t root;
  root = ::getpid();
  if (::clone(&wait_for_end, stack.data() + stack.size(), CLONE_VM | CLONE_FILES | SIGCHLD, &root) <
      0)
    return fail_errno(errno, "creating a process that keeps a root's files");
  return {};
}

}  // namespace shima::pvas
