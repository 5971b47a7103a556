// The two processes of a daemon.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>

#include "dse/daemon.h"
#include "dse/descendants.h"

namespace shima::dse {
namespace {

constexpr int exit_refused = 2;
constexpr int exit_lost = 1;

void complain(const Error& error) {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  fmt::print(stderr, "shima: dse daemon on {}: {}\n", name.data(), describe(error));
}

int work(const Introduction& introduction, pid_t outer) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != outer) return exit_lost;
  become_reaper();
  const sigset_t watched = Daemon::watched_signals();
  const UniqueFd signals(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  auto daemon = Daemon::start(introduction, signals.get());
  if (!daemon) {
    complain(daemon.error());
    return exit_refused;
  }
  const Status end = (*daemon)->run();
  if (end) return 0;
  if (end.error().code != Code::peer_lost) complain(end.error());
  return exit_lost;
}

// Until the inner process has ended; its exit code.
int watch(pid_t inner, const sigset_t& watched) {
  while (true) {
    const int signal = ::sigwaitinfo(&watched, nullptr);
    if (signal > 0 && signal != SIGCHLD) ::kill(inner, SIGTERM);
    int status = 0;
    if (::waitpid(inner, &status, WNOHANG) == 0) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : exit_lost;
  }
}

// What has been read is for this process alone. The pipes of tasks must not get the numbers of
// standard streams, which a launcher may have closed.
void close_input() {
  int nothing = ::open("/dev/null", O_RDWR);
  if (nothing >= 0 && nothing != STDIN_FILENO) ::dup2(nothing, STDIN_FILENO);
  while (nothing >= 0 && nothing <= STDERR_FILENO) nothing = ::open("/dev/null", O_RDWR);
  if (nothing > STDERR_FILENO) ::close(nothing);
}

}  // namespace

int run_daemon() {
  const auto introduction = read_introduction(STDIN_FILENO);
  if (!introduction) {
    complain(introduction.error());
    return exit_refused;
  }
  close_input();
  ::setsid();  // signals of a terminal reach `run` alone
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  become_reaper();
  const sigset_t watched = Daemon::watched_signals();
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  const pid_t outer = ::getpid();
  const pid_t inner = ::fork();
  if (inner == 0) ::_exit(work(*introduction, outer));
  const int code = inner < 0 ? exit_refused : watch(inner, watched);
  kill_descendants();
  return code;
}

}  // namespace shima::dse
