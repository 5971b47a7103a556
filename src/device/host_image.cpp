#include "device/host_image.h"

#include <algorithm>

#include "base/units.h"

namespace shima {

Result<std::unique_ptr<HostImage>> HostImage::make(const DeviceSlice& memory) {
  const Bounds bounds = bounds_of(memory.slice);
  const std::uint64_t span = as_unsigned(bounds.highest - bounds.lowest);
  SHIMA_TRY_ASSIGN(auto queue, memory.place.driver->open_queue(memory.place, span));
  const auto start =
      static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(queue->buffer().data()));
  return std::unique_ptr<HostImage>(new HostImage(memory, std::move(queue), start - bounds.lowest));
}

void* HostImage::address_of(const void* address) const {
  return reinterpret_cast<void*>(reinterpret_cast<std::intptr_t>(address) + distance_);
}

Status HostImage::copy_from_device() {
  return copy(DeviceCopy::from_device, memory_.slice.len_bytes);
}

Status HostImage::copy_to_device(std::uint64_t len_bytes) {
  return copy(DeviceCopy::to_device, std::min(len_bytes, memory_.slice.len_bytes));
}

// Waits also after an error: copies that were started before it are under way.
Status HostImage::copy(DeviceCopy direction, std::uint64_t len_bytes) {
  Slice device = memory_.slice;
  device.len_bytes = len_bytes;
  Slice host = device;
  host.base += distance_;
  Cursor walk(device);
  const Status started = start_copy(*queue_, direction, walk, Cursor(host));
  SHIMA_TRY(queue_->set_mark(0));
  const Status arrived = queue_->wait_for(0);
  return started ? arrived : started;
}

}  // namespace shima
