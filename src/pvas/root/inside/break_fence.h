// Fences the program break of a space.
//
// A process has one program break. Without a fence the libcs of all tasks would allocate at the
// same break and free the root's memory there. Before any allocation the root maps an inaccessible
// page above the break: every brk that reaches the kernel then fails in both directions, and malloc
// uses mmap. The brk calls of tasks are redirected (task_break.h).
#pragma once

#include "base/result.h"

namespace shima::pvas {

// An error if the break can be moved nevertheless.
[[nodiscard]] Status look_at_break_fence();

}  // namespace shima::pvas
