// A process that stands where its tasks would stand if they were its children or itself: it hands
// on signals, stops and goes on with them, and learns how they end.
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
  // From here on signals wait to be handed on. To be made after like_this_process, which looks at
  // the mask that the tasks are to have.
  StandIn();
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;
  ~StandIn();

  // The process group that tasks should join: the terminal's, where this process is in front of
  // one, so that they may read from it and get its signals; otherwise 0, a group of their own, so
  // that a signal for this process's group does not reach them twice.
  [[nodiscard]] static pid_t group_for_tasks();

  // Waits until all have ended; their statuses as of wait(2), in the same order. Why a program did
  // not begin, or that all were killed with their root, is said on stderr.
  [[nodiscard]] Result<std::vector<int>> wait_for(std::vector<StartedTask>& tasks);

 private:
  void hand_on(const std::vector<StartedTask>& tasks, const std::vector<bool>& ended) const;

  [[nodiscard]] Result<std::optional<TaskChange>> news_of(const StartedTask& task);

  sigset_t before_{};
  UniqueFd signals_;
  bool shares_group_;
  bool told_ = false;  // that the root is gone
};

// Ends this process as a task has ended: with its exit code, or by its signal.
[[noreturn]] void end_like(int status);

}  // namespace shima::pvas
