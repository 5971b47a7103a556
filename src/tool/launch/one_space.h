// `--one-space`: the ranks that a launcher starts on a node become tasks of one space.
#pragma once

#include "tool/common/process.h"

namespace shima::tool {

// Makes `program` a task of the space of this process's launcher, represents it, and ends as it
// ends. Returns if it cannot be a task, after logging the reason in one line (for one rank of the
// node): then run it as an ordinary process.
void become_task(const Command& program);

// Sets the environment that the launcher of such ranks needs too: an Open MPI launcher without it
// crashes when ranks spawn others.
void prepare_launcher_for_tasks();

// The process that has started this one as a rank: the launcher's daemon here, else the parent.
[[nodiscard]] int launcher_process();

}  // namespace shima::tool
