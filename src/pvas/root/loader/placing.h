// Where a task's mappings go.
//
// The kernel places mappings anywhere in an address space, and does not know that parts of it
// belong to different tasks; and when a task has ended, nobody could say which were its own. So the
// calls of mmap, mremap and brk in a task's private copies of ld.so and libc are redirected: to a
// stub beside the code (an *island*), which calls place_mapping, which picks an address in the
// task's partition. All of a task's memory then goes by one munmap.
//
// By the same way /proc/self/exe means the task's program, when it is asked for or executed: for
// the kernel it is the root's.
//
// This runs inside of a task, at any time, on any of its threads: it has no locks, no libc, and
// keeps no vector register busy. The code itself is the root's, which lives in the same space.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pvas/shared/board.h"

namespace shima::pvas {

// Six registers of a system call, as an island's stub leaves them on the stack.
struct CallRegisters {
  long r9, r8, r10, rdx, rsi, rdi;
};

// Stands in for system call `number`; returns what the call would. Only stubs call it.
extern "C" long shima_place_mapping(Window* window, const CallRegisters* registers, long number);

inline constexpr std::size_t island_bytes = 4096;

// Redirects what is found in `code`, which must be writable and not yet running, by stubs at
// `island` (island_bytes, writable; at most 2 GiB away). Returns how many calls were found.
unsigned redirect_calls(std::uint8_t* code, std::size_t size, std::uint8_t* island, Window* window);

}  // namespace shima::pvas
