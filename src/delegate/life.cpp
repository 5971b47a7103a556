#include "delegate/life.h"

#include <poll.h>
#include <sys/syscall.h>

#include <cerrno>
#include <string>

namespace shima::delegate {

Result<Life> Life::of(pid_t pid) {
  Life life;
  life.pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (life.pidfd_) return life;
  const std::string who = "process " + std::to_string(pid);
  if (errno == ESRCH) return fail(Code::peer_lost, who + " has ended");
  return fail_errno(errno, "watching " + who);
}

bool Life::has_ended() const {
  pollfd exited{pidfd_.get(), POLLIN, 0};
  return ::poll(&exited, 1, 0) == 1;
}

}  // namespace shima::delegate
