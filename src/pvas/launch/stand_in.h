// A process that represents its tasks towards their launcher: it forwards signals, stops and
// continues with them, and collects their exit statuses.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

#include "base/result.h"
#include "pvas/launch/spawn.h"

namespace shima::pvas {

class StandIn {
 public:
  // From here on, signals are queued for forwarding. Construct it after like_this_process, which
  // reads the signal mask for the tasks.
  StandIn();
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;
  ~StandIn();

  // The process group for the tasks: the terminal's if this process is in the foreground, so that
  // they may read from the terminal and get its signals; otherwise 0, a new group for each, so that
  // a signal for this process's group does not reach them twice.
  [[nodiscard]] static pid_t group_for_tasks();

  // Waits until all have ended; returns their statuses as of wait(2), in the same order. Reports on
  // stderr why a program did not start, or that the root died with its tasks.
  [[nodiscard]] Result<std::vector<int>> wait_for(std::vector<StartedTask>& tasks);

 private:
  void hand_on(const std::vector<StartedTask>& tasks, const std::vector<bool>& ended) const;

  [[nodiscard]] Result<std::optional<TaskChange>> news_of(const StartedTask& task);

  sigset_t before_{};
  UniqueFd signals_;
  bool shares_group_;
  bool told_ = false;  // the loss of the root was reported
};

// Ends this process like a task: with its exit code, or by its signal.
[[noreturn]] void end_like(int status);

}  // namespace shima::pvas
