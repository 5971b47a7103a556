// A space and its tasks, as their root has them.
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
#include "pvas/shared/board.h"
#include "pvas/shared/wire.h"

namespace shima::pvas {

// Which part of the addresses a space uses, of `count` equal ones.
struct Slice {
  int index = 0;
  int count = 1;
};

struct Started {
  int task = 0;
  pid_t pid = 0;
};

// What has become of a process: what wait(2) says, and words where it never began.
struct Change {
  pid_t pid = 0;
  int status = 0;
  std::string failure;
};

class Space {
 public:
  [[nodiscard]] static Result<Space> make(Slice slice, const std::string& socket_name);

  // Starts a program as a task.
  [[nodiscard]] Result<Started> start(const SpawnOrder& order, const UniqueFd& folder,
                                      const std::vector<TaskFile>& files);

  // The processes that ended, stopped or went on since the last call; their memory is given back.
  [[nodiscard]] std::vector<Change> take_changes();

  // Gives back the memory of tasks that have executed another program, and of those that have ended
  // and are held no more.
  void sweep();

  // A task's number stays its own until this is called, also after its end.
  void let_go(int place);

  void signal(pid_t pid, int number) const;
  [[nodiscard]] bool empty() const { return tasks_.empty(); }
  [[nodiscard]] Board& board() const { return *board_; }

 private:
  struct Task {
    std::optional<int> place;  // none once it has left the space
    EntryOrder* order = nullptr;
  };

  explicit Space(Board* board) : board_(board) {}
  [[nodiscard]] Result<int> find_place();
  void leave_place(Task& task);
  void forget(int place);
  void settle(int place);
  [[nodiscard]] bool is_held(int place) const;

  // What the board does not tell of a place.
  struct Keeping {
    bool mapped = false;
    bool named = false;  // whoever started the task has not let go of its number
  };

  Board* board_;  // for ever: tasks look at it until they are gone
  std::array<Keeping, max_tasks> keeping_{};
  std::map<pid_t, Task> tasks_;
};

}  // namespace shima::pvas
