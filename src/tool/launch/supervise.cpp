// Signals are blocked and taken one by one with sigwaitinfo: nothing runs in a handler, and no exit
// of a child is missed between two steps. A signal from the terminal has reached the child too,
// because it is in the same process group; only signals sent to this process are forwarded.
#include "tool/launch/supervise.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace shima::tool {
namespace {

[[noreturn]] void be_launcher(const Command& command, const sigset_t& mask) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  const Failure failure = become(command);
  std::fprintf(stderr, "shima: %s: %s; %s\n", failure.thing.c_str(), failure.rule.c_str(),
               failure.advice.c_str());
  _exit(exit_refused);
}

int wait_and_hand_on(pid_t child, const sigset_t& watched) {
  for (;;) {
    siginfo_t info;
    const int signal = sigwaitinfo(&watched, &info);
    if (signal > 0 && signal != SIGCHLD) {
      if (info.si_code != SI_KERNEL) kill(child, signal);
      continue;
    }
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended < 0 && errno == ECHILD) return exit_refused;
    if (ended != child) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : exit_signalled_base + WTERMSIG(status);
  }
}

}  // namespace

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT})
    sigaddset(&set, signal);
  return set;
}

Outcome<int> supervise(const Command& command) {
  const sigset_t watched = watched_signals();
  sigset_t before;
  // An inherited SIG_IGN of SIGCHLD would hide the end of the job.
  const auto disposition = std::signal(SIGCHLD, SIG_DFL);
  sigprocmask(SIG_BLOCK, &watched, &before);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGCHLD, disposition);
    be_launcher(command, before);
  }
  if (child < 0)
    return refuse(command.front(), std::string("cannot fork (") + std::strerror(errno) + ")",
                  "check the limits on processes and memory");
  const int code = wait_and_hand_on(child, watched);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return code;
}

}  // namespace shima::tool
