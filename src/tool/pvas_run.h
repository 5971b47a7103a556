// `shima pvas run`: independent programs as tasks of one space.
#pragma once

#include "tool/common/failure.h"
#include "tool/common/process.h"

namespace shima::tool {

struct PvasOptions {
  int tasks = 1;
  Command program;
};

// Returns the first nonzero exit code of a task, else 0.
[[nodiscard]] Outcome<int> run_tasks(const PvasOptions& options);

}  // namespace shima::tool
