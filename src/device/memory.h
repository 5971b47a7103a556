// Which buffers are device memory.
#pragma once

#include <optional>

#include "device/driver.h"
#include "pattern/pattern.h"

namespace shima {

// The place of the bytes of a memory slice, if any is device memory; nothing for host memory.
// Checks the first and the last piece, and the first 64 entries of a list (a struct of addresses).
// Costs less than 0.1 us if no driver is loaded. Thread-safe.
[[nodiscard]] std::optional<DevicePlace> device_place_of(const Slice& memory);

// False: no memory is device memory, since no driver is loaded.
[[nodiscard]] bool may_be_device_memory();

}  // namespace shima
