// `--one-space`: the ranks that a launcher starts on a node become tasks of one space.
#pragma once

#include "tool/process.h"

namespace shima::tool {

// Makes `program` a task of the space of this process's launcher, stands in for it, and ends as it
// ends. Returns where it cannot be a task, having said why in one line (for one rank of the node):
// then it is to be run as an ordinary process.
void become_task(const Command& program);

}  // namespace shima::tool
