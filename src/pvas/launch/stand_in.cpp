#include "pvas/launch/stand_in.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace shima::pvas {
namespace {

// All signals except those that this process's own faults raise, and those without meaning for a
// task.
sigset_t signals_to_hand_on() {
  sigset_t set;
  ::sigfillset(&set);
  for (const int number : {SIGCHLD, SIGPIPE, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS,
                           SIGABRT, SIGTTIN, SIGTTOU})
    ::sigdelset(&set, number);
  return set;
}

// Applies a task's change to this process; returns whether the task has ended.
bool take_part(const TaskChange& change) {
  if (change.turn == Turn::stopped) ::kill(::getpid(), SIGSTOP);
  if (!change.failure.empty())
    std::fprintf(stderr, "shima: the task did not start: %s\n", change.failure.c_str());
  return change.turn == Turn::ended;
}

}  // namespace

StandIn::StandIn() : shares_group_(group_for_tasks() != 0) {
  const sigset_t set = signals_to_hand_on();
  ::sigprocmask(SIG_BLOCK, &set, &before_);
  signals_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

StandIn::~StandIn() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

pid_t StandIn::group_for_tasks() {
  const UniqueFd terminal(::open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY));
  return terminal && ::tcgetpgrp(terminal.get()) == ::getpgrp() ? ::getpgrp() : 0;
}

// Tasks in the terminal's group get the terminal's signals from the kernel.
void StandIn::hand_on(const std::vector<StartedTask>& tasks, const std::vector<bool>& ended) const {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (shares_group_ && info.ssi_code == SI_KERNEL) continue;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (ended[i]) continue;
      const Status sent = tasks[i].signal(static_cast<int>(info.ssi_signo));
      static_cast<void>(sent);  // the wait reports a root that has exited
    }
  }
}

// If a root exits, its tasks end too.
Result<std::optional<TaskChange>> StandIn::news_of(const StartedTask& task) {
  auto change = task.next_change(std::chrono::milliseconds{0});
  if (change || change.error().code != Code::peer_lost) return change;
  if (!std::exchange(told_, true))
    std::fputs(
        "shima: the space was killed, and all its tasks with it; if memory ran out, the kernel's "
        "log "
        "(dmesg) reports that: use less memory, or fewer tasks on this machine\n",
        stderr);
  return TaskChange{Turn::ended, SIGKILL, {}};
}

Result<std::vector<int>> StandIn::wait_for(std::vector<StartedTask>& tasks) {
  std::vector<int> statuses(tasks.size());
  std::vector<bool> ended(tasks.size());
  std::vector<pollfd> watched{{signals_.get(), POLLIN, 0}};
  for (const StartedTask& task : tasks) watched.push_back({task.socket(), POLLIN, 0});
  for (std::size_t left = tasks.size(); left > 0;) {
    if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR)
      return fail_errno(errno, "waiting for tasks");
    hand_on(tasks, ended);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (watched[i + 1].revents == 0) continue;
      SHIMA_TRY_ASSIGN(const auto change, news_of(tasks[i]));
      if (!change || !take_part(*change)) continue;
      statuses[i] = change->status;
      ended[i] = true;
      watched[i + 1].fd = -1;  // ignored by poll
      watched[i + 1].revents = 0;
      --left;
    }
  }
  return statuses;
}

void end_like(int status) {
  if (WIFEXITED(status)) std::_Exit(WEXITSTATUS(status));
  // The task has written a core file if it was to write one.
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  const int number = WTERMSIG(status);
  std::signal(number, SIG_DFL);
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, number);
  ::kill(::getpid(), number);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  std::_Exit(128 + number);
}

}  // namespace shima::pvas
