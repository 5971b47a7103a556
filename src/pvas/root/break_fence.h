// The one heap of a space.
//
// A process has one "program break", and the libcs of all tasks would take memory at the same one.
// The root puts it at the end of a page and maps a page above that nobody can use: from then on
// every brk that asks for more fails, and every malloc goes to mmap.
#pragma once

#include "base/result.h"

namespace shima::pvas {

[[nodiscard]] Status fence_program_break();

// Moves the break back to the fence where a task has lowered it, which nothing can forbid.
void mend_program_break();

}  // namespace shima::pvas
