// The connection to the meeting place of a job over hosts that a process has before LAPI_Init.
//
// Its end tells the place that the task has ended without joining. It is made only by the process
// that the launcher has started: that of a shell's child would not be the end of the task.
#pragma once

#include "base/unique_fd.h"

namespace shima::lapi {

// Before main(). Nothing if the process is in no such job, or if the place cannot be reached.
void connect_early();
// For the first LAPI_Init of this process; without a descriptor if there is none.
[[nodiscard]] UniqueFd take_early_connection();
// At the end of the process: if it has not joined, it never will.
void leave_early();

}  // namespace shima::lapi
