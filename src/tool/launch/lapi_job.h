// `shima run --lapi`: a job of LAPI tasks on this machine, or what a launcher starts on several.
#pragma once

#include "tool/common/failure.h"
#include "tool/common/process.h"

namespace shima::tool {

// Starts the tasks and waits for all. Returns the first exit code that is not 0, by task; 128 + its
// signal for a task that was killed.
[[nodiscard]] Outcome<int> run_lapi_job(const Command& program, int tasks, bool one_space);

// Runs a command (a launcher, or a program as the only task) with a place where the tasks that it
// starts meet; returns its exit code.
[[nodiscard]] Outcome<int> run_lapi_launcher(const Command& command);

}  // namespace shima::tool
