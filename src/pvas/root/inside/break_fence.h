// The one program break of a space.
//
// A process has one "program break", and the libcs of all tasks would take memory at the same one,
// and give back what the root has there. Before anything is there the root maps a page above it
// that nobody can use: from then on every brk that reaches the kernel fails, in both directions,
// and malloc maps its memory. Those of tasks are redirected (task_break.h).
#pragma once

#include "base/result.h"

namespace shima::pvas {

// An error where the break can be moved all the same.
[[nodiscard]] Status look_at_break_fence();

}  // namespace shima::pvas
