// `shima pvas run`: programs that know nothing of each other as tasks of one space.
#pragma once

#include "tool/common/failure.h"
#include "tool/common/process.h"

namespace shima::tool {

struct PvasOptions {
  int tasks = 1;
  Command program;
};

// The value is the exit code: that of the first task whose own is not 0.
[[nodiscard]] Outcome<int> run_tasks(const PvasOptions& options);

}  // namespace shima::tool
