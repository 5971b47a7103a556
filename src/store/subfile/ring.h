// Many transfers with few system calls, through io_uring.
//
// A ring is made for each request and given up after it: that costs as much as some tens of
// transfers, and nothing is shared between threads or inherited by children.
#pragma once

#include <cstdint>
#include <span>

#include "store/subfile/subfile.h"

namespace shima {

// Moves all runs between the open file `fd` and memory, hundreds a system call and under way at
// once. False where the system has no io_uring for this process, or if any run was not moved whole;
// then some may have been moved. Blocks.
[[nodiscard]] bool move_through_ring(int fd, std::span<const ApartRun> runs, bool writing);

}  // namespace shima
