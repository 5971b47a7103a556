// The boards of this machine's processes (observe/board.h), found under /proc.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/process/process_handle.h"
#include "base/unique_fd.h"
#include "tool/top/sample.h"

namespace shima::tool {

// A page as a task of a sample; `now_ns` by the machine's monotonic clock. What is not printable is
// replaced: a page comes from another process.
[[nodiscard]] TaskSample task_of(const BoardPage& page, std::uint64_t now_ns);

// Whether a word of the command line means the job of this task: its whole name, the number of the
// process in that name, or the number of the task's process.
[[nodiscard]] bool is_meant(const std::string& job, const TaskSample& task);

class Boards {
 public:
  // Looks for processes that have come. Those that this user may not look into are left out.
  void find();
  // What all show now. Processes that have ended stay, as they were at the end, while their board
  // is open here.
  [[nodiscard]] Sample look();

 private:
  struct Board {
    int pid = 0;
    UniqueFd memory;
    ProcessHandle process;
    bool is_own = false;  // this user's
    bool has_ended = false;
  };
  void find_in(int pid);

  std::map<ino_t, Board> boards_;
};

}  // namespace shima::tool
