// Keeping the root's files open until its tasks have been told of its end.
#pragma once

#include "base/result.h"

namespace shima::pvas {

// The kernel closes a killed process's files before it kills the children that asked for it. Memory
// that is watched for first touches by such a file would in between be pages of zeros, which a task
// might take for data. So a second process has the same table of files; it is killed when the tasks
// are.
[[nodiscard]] Status outlive_root();

}  // namespace shima::pvas
