// A program break for each task.
//
// The kernel has one break per address space, which the root has fenced (break_fence.h). The brk
// calls of a task's private libc are redirected here: the heap is a part of the task's partition
// that grows and shrinks as the kernel's would. Some readable pages follow it: MPICH copies 4 KiB
// from the address of a shorter worker object, and if that is the last block of the heap the copy
// must not kill the task.
#pragma once

#include "pvas/shared/space_state.h"

namespace shima::pvas {

inline constexpr std::uint64_t readable_behind_break = 64 * 1024;

// As brk(2): returns the resulting break, which is the old one if it cannot be moved.
[[nodiscard]] std::uint64_t move_break(Heap& heap, std::uint64_t wanted);

}  // namespace shima::pvas
