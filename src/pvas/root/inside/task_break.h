// A task's program break.
//
// The kernel has one break for a whole address space, which the root has fenced (break_fence.h).
// Calls of brk in a task's private libc come here instead: the heap is a part of the task's
// partition, grown and shrunk as the kernel would. Behind it lie some pages that can be read: MPICH
// copies 4 KiB from a worker's address that is shorter, and where that is the last block of the
// heap, the copy must not end the task.
#pragma once

#include "pvas/shared/board.h"

namespace shima::pvas {

inline constexpr std::uint64_t readable_behind_break = 64 * 1024;

// What brk(2) returns: the break as it is then, which is the old one where it cannot be moved.
[[nodiscard]] std::uint64_t move_break(Heap& heap, std::uint64_t wanted);

}  // namespace shima::pvas
