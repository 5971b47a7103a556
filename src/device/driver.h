// GPU drivers: which addresses are memory of a device, and asynchronous copies from and to it.
//
// Device memory is memory that neither the CPU nor a system call can use. Managed and pinned host
// memory are host memory here. A driver's functions are looked up at run time among the libraries
// that the program has loaded (see symbols.h); their declarations follow the drivers' public
// documentation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "pattern/copy.h"

namespace shima {

class Driver;

// The device and context of a piece of device memory, in the driver's own numbers.
struct DevicePlace {
  Driver* driver = nullptr;
  std::uintptr_t context = 0;
  std::uintptr_t device = 0;

  friend bool operator==(const DevicePlace&, const DevicePlace&) = default;
};

// A stream of copies on one device, in order, and a buffer of host memory, which is pinned if the
// driver can. Each call selects the device for the calling thread and restores the earlier
// selection. Used by one thread at a time. The destructor frees everything and ignores errors,
// because the program may have shut its device down.
class CopyQueue {
 public:
  static constexpr int mark_count = 2;

  CopyQueue() = default;
  CopyQueue(const CopyQueue&) = delete;
  CopyQueue& operator=(const CopyQueue&) = delete;
  virtual ~CopyQueue() = default;

  [[nodiscard]] virtual std::span<std::byte> buffer() const = 0;
  // Starts copying the pieces of each pair, from side b to side a.
  [[nodiscard]] virtual Status start(std::span<const StripPair> pairs) = 0;
  // Records a mark after all copies that were started.
  [[nodiscard]] virtual Status set_mark(int mark) = 0;
  // Waits until all copies before the mark are complete. The mark must have been set.
  [[nodiscard]] virtual Status wait_for(int mark) = 0;
};

class Driver {
 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  virtual ~Driver() = default;

  // Nothing if `address` is host memory. Local, thread-safe.
  [[nodiscard]] virtual std::optional<DevicePlace> find(std::uintptr_t address) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<CopyQueue>> open_queue(
      const DevicePlace& place, std::uint64_t buffer_bytes) = 0;
};

// A driver that the program has loaded, or null. The object lives until the process ends.
[[nodiscard]] Driver* find_cuda();
[[nodiscard]] Driver* find_hip();
[[nodiscard]] Driver* find_level_zero();

}  // namespace shima
