// Keeps the root's files open until its tasks have been notified of its death.
#pragma once

#include "base/result.h"

namespace shima::pvas {

// When the root is killed, the kernel closes its files before it kills the tasks that asked for
// PR_SET_PDEATHSIG. In between, memory that userfaultfd watches would read as zeros, which a task
// could take for data. So a second process shares the root's file table; it is killed together with
// the tasks.
[[nodiscard]] Status outlive_root();

}  // namespace shima::pvas
