// `shima run --lapi -n N program`: a job of LAPI tasks on this machine.
#pragma once

#include "tool/common/failure.h"
#include "tool/common/process.h"

namespace shima::tool {

// Starts the tasks and waits for all. Returns the first exit code that is not 0, by task; 128 + its
// signal for a task that was killed.
[[nodiscard]] Outcome<int> run_lapi_job(const Command& program, int tasks, bool one_space);

}  // namespace shima::tool
