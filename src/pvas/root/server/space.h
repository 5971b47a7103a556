// A space and its tasks, from the root's side.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "pvas/root/loader/partition.h"
#include "pvas/shared/space_state.h"
#include "pvas/shared/wire.h"

namespace shima::pvas {

// The part of the address range that a space uses, out of `count` equal ones.
struct Slice {
  int index = 0;
  int count = 1;
};

struct Started {
  int task = 0;
  pid_t pid = 0;
};

// A change of state of a process: the status of wait(2), and the reason if it never started.
struct Change {
  pid_t pid = 0;
  int status = 0;
  std::string failure;
};

class Space {
 public:
  [[nodiscard]] static Result<Space> make(Slice slice, const std::string& socket_name);

  // Starts a program as a task.
  [[nodiscard]] Result<Started> start(const SpawnOrder& order, const UniqueFd& directory,
                                      const std::vector<TaskFile>& files);

  // The processes that ended, stopped or continued since the last call. Frees their memory.
  [[nodiscard]] std::vector<Change> take_changes();

  // Frees the memory of tasks that have executed another program, and of ended tasks that no task
  // holds.
  void sweep();

  // Releases a task's number, which is not reused before, even after the task has ended.
  void let_go(int place);

  void signal(pid_t pid, int number) const;
  [[nodiscard]] bool empty() const { return tasks_.empty(); }
  [[nodiscard]] SpaceState& space_state() const { return *space_state_; }

 private:
  struct Task {
    std::optional<int> place;  // nothing after it has left the space
    EntryOrder* order = nullptr;
  };

  explicit Space(SpaceState* space_state) : space_state_(space_state) {}
  [[nodiscard]] Result<int> find_place();
  void leave_place(Task& task);
  void forget(int place);
  void settle(int place);
  [[nodiscard]] bool is_held(int place) const;

  // The state of a place that is not in the SpaceState.
  struct Keeping {
    bool mapped = false;
    bool named = false;  // the starter of the task has not released its number
  };

  SpaceState* space_state_;  // never freed: tasks read it until they exit
  std::array<Keeping, max_tasks> keeping_{};
  std::map<pid_t, Task> tasks_;
};

}  // namespace shima::pvas
