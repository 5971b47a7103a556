// Device memory as one side of a transfer, through a bounded buffer of host memory.
//
// The data bytes of a slice pass through the two halves of a queue's buffer, a piece at a time.
// From the device: the copy of the next piece is started before the caller gets a piece, so that
// the device copies while the caller writes. To the device: the copy of a piece is started when the
// caller has filled it, and awaited when its half is needed again, so that the device copies while
// the caller reads. Only bytes of the slice are written on the device.
//
// A pool keeps queues between the calls on one file. Each call uses a separate queue: a call that
// waits for other ranks must not delay another.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "device/driver.h"
#include "pattern/cursor.h"

namespace shima {

constexpr std::uint64_t default_device_buffer_bytes = std::uint64_t{16} << 20;

enum class DeviceCopy : std::uint8_t { from_device, to_device };

// Device memory as a Slice (the place of each byte), and the device that owns it.
struct DeviceSlice {
  Slice slice;
  DevicePlace place;
};

class QueuePool {
 public:
  // A queue at `place` with a buffer of `buffer_bytes`. Thread-safe.
  [[nodiscard]] Result<std::unique_ptr<CopyQueue>> take(const DevicePlace& place,
                                                        std::uint64_t buffer_bytes);
  void give_back(const DevicePlace& place, std::unique_ptr<CopyQueue> queue);
  void clear();

 private:
  struct Idle {
    DevicePlace place;
    std::unique_ptr<CopyQueue> queue;
  };
  std::mutex mutex_;
  std::vector<Idle> idle_;
};

class StagedMemory {
 public:
  // `buffer_bytes`: of both halves together; 0: automatic. `pool` must outlive the result.
  [[nodiscard]] static Result<std::unique_ptr<StagedMemory>> begin(QueuePool& pool,
                                                                   const DeviceSlice& memory,
                                                                   DeviceCopy direction,
                                                                   std::uint64_t buffer_bytes);
  StagedMemory(const StagedMemory&) = delete;
  StagedMemory& operator=(const StagedMemory&) = delete;
  // Waits for copies under way.
  ~StagedMemory();

  // How many pieces next() will still return.
  [[nodiscard]] std::uint64_t pieces_left() const;
  // The next piece as host memory, valid until the call after the next; from the device, filled
  // with its bytes. Not to be called when no piece is left.
  [[nodiscard]] Result<Slice> next();
  // To the device: the caller has filled the first `len_bytes` of the last piece of next(). If that
  // is less than the piece, it is the last one.
  [[nodiscard]] Status filled(std::uint64_t len_bytes);
  // Waits until all filled bytes are on the device.
  [[nodiscard]] Status finish();

 private:
  StagedMemory(QueuePool& pool, const DeviceSlice& memory, DeviceCopy direction,
               std::unique_ptr<CopyQueue> queue);
  [[nodiscard]] std::byte* half(std::uint64_t piece) const;
  [[nodiscard]] std::uint64_t piece_len(std::uint64_t piece) const;
  [[nodiscard]] Status start_copy(std::uint64_t piece, std::uint64_t len_bytes);
  [[nodiscard]] Status wait_for(std::uint64_t piece);

  QueuePool& pool_;
  DevicePlace place_;
  DeviceCopy direction_;
  std::unique_ptr<CopyQueue> queue_;
  Cursor device_;  // the start of the next copy
  std::uint64_t len_bytes_;
  std::uint64_t half_bytes_;
  std::uint64_t piece_count_;
  std::uint64_t next_piece_ = 0;
  bool under_way_[CopyQueue::mark_count] = {};
};

// Starts copying data bytes between the device's cursor and `host`; moves the cursor past them.
[[nodiscard]] Status start_copy(CopyQueue& queue, DeviceCopy direction, Cursor& device,
                                Cursor host);

}  // namespace shima
