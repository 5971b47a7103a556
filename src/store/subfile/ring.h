// Many transfers with few system calls, through io_uring.
//
// A ring is created for each request and closed after it. That costs as much as some tens of
// transfers; nothing is shared between threads or inherited by children.
#pragma once

#include <cstdint>
#include <span>

#include "store/subfile/subfile.h"

namespace shima {

// Moves all runs between the open file `fd` and memory, hundreds per system call, concurrently.
// False if the process has no io_uring, or if any run was not moved completely; then some may have
// been moved. Blocks. `avoids_slow`: copies at a slow distance (base/copy/distance.h).
[[nodiscard]] bool move_through_ring(int fd, std::span<const ApartRun> runs, bool writing,
                                     bool avoids_slow);

}  // namespace shima
