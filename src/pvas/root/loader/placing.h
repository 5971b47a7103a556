// Places a task's mappings inside its partition.
//
// The kernel places mappings anywhere in the address space and does not know which task owns which
// part; after a task has ended, its mappings could not be found. So the calls of mmap, mremap and
// brk in a task's private copies of ld.so and libc are redirected to a stub beside the code (an
// *island*). The stub calls place_mapping, which picks an address in the task's partition. One
// munmap then frees all of a task's memory.
//
// The same redirection makes /proc/self/exe mean the task's program when it is read or executed;
// for the kernel it is the root's.
//
// This code runs inside a task, at any time, on any of its threads: it uses no locks, no libc and
// no vector registers. The code itself is the root's, in the same address space.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pvas/shared/space_state.h"

namespace shima::pvas {

// Six registers of a system call, as the stub of an island saves them on the stack.
struct CallRegisters {
  long r9, r8, r10, rdx, rsi, rdi;
};

// Replaces system call `number`; returns what the call would. Only stubs call it.
extern "C" long shima_place_mapping(MappingArea* area, const CallRegisters* registers, long number);

inline constexpr std::size_t island_bytes = 4096;

// Redirects the calls found in `code`, which must be writable and not yet running, through stubs at
// `island` (island_bytes, writable, at most 2 GiB away). Returns the number of calls found.
unsigned redirect_calls(std::uint8_t* code, std::size_t size, std::uint8_t* island,
                        MappingArea* area);

}  // namespace shima::pvas
