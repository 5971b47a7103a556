// Buffers that are not host memory: a GPU's pointers, which no system call and no copy can follow.
#pragma once

#include "base/result.h"

namespace shima {

// Looks whether a GPU driver is in the process; to be called now and then, when a file is opened.
void look_for_gpu_drivers();

// bad_argument if `address` is memory of a device. Costs nothing where no driver was found.
[[nodiscard]] Status check_host_memory(const void* address);

}  // namespace shima
