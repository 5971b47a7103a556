// The one program break of a space.
//
// A process has one "program break", and the libcs of all tasks would take memory at the same one.
// The root puts it at the end of a page and maps a page above that nobody can use: from then on
// every brk that reaches the kernel fails. Those of tasks are redirected (task_break.h), and where
// one is not, its malloc goes to mmap.
#pragma once

#include "base/result.h"

namespace shima::pvas {

[[nodiscard]] Status fence_program_break();

}  // namespace shima::pvas
