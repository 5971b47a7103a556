// `--one-space`: the ranks that a launcher starts on a node become tasks of one space.
#pragma once

#include "tool/common/process.h"

namespace shima::tool {

// Makes `program` a task of the space of this process's launcher, stands in for it, and ends as it
// ends. Returns where it cannot be a task, having said why in one line (for one rank of the node):
// then it is to be run as an ordinary process.
void become_task(const Command& program);

// Says in the environment what the launcher of such ranks has to know as well: an Open MPI launcher
// that learns of it from the ranks alone crashes when they spawn others.
void prepare_launcher_for_tasks();

}  // namespace shima::tool
