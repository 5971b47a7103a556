// A copy of device memory in host memory, for code that takes a buffer and its datatype. The
// distances between data bytes are the same as on the device.
#pragma once

#include <memory>

#include "device/staged_memory.h"

namespace shima {

class HostImage {
 public:
  [[nodiscard]] static Result<std::unique_ptr<HostImage>> make(const DeviceSlice& memory);

  // The host address of the copy of device address `address`.
  [[nodiscard]] void* address_of(const void* address) const;
  // Both calls block. The second one copies the first `len_bytes` data bytes.
  [[nodiscard]] Status copy_from_device();
  [[nodiscard]] Status copy_to_device(std::uint64_t len_bytes);

 private:
  HostImage(const DeviceSlice& memory, std::unique_ptr<CopyQueue> queue, std::int64_t distance)
      : memory_(memory), queue_(std::move(queue)), distance_(distance) {}
  [[nodiscard]] Status copy(DeviceCopy direction, std::uint64_t len_bytes);

  DeviceSlice memory_;
  std::unique_ptr<CopyQueue> queue_;
  std::int64_t distance_;  // from the device's addresses to the image's
};

}  // namespace shima
