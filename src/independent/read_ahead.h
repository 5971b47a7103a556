// Read-ahead for a member that reads at a constant stride.
//
// The kernel reads ahead of sequential reads in one file. It detects neither a process that reads
// 16 KiB every MiB, nor a sequence that continues in another subfile, so that one disk works while
// the others idle. This class observes the distance between a member's reads. Once the same
// distance has occurred a few times in a row, it requests the bytes of the next reads
// (posix_fadvise(2), POSIX_FADV_WILLNEED), which the kernel loads while the member continues.
//
// Only the bytes of the pieces are requested: if other members read the gaps, the kernel sees one
// sequence and makes longer requests than advice would. For data in the page cache the cost is an
// occasional check. A wrong guess costs useless reads, never a wrong byte.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.h"
#include "store/striped/logical_file.h"

namespace shima {

// Detects the distance between reads. Concurrent readers can only spoil each other's guesses.
class StrideWatch {
 public:
  // Records a read; returns the distance to the next one, or 0 if it is unknown.
  [[nodiscard]] std::int64_t next(std::int64_t begin) {
    const std::int64_t distance = begin - last_.load(std::memory_order_relaxed);
    last_.store(begin, std::memory_order_relaxed);
    if (distance != distance_.load(std::memory_order_relaxed)) {
      distance_.store(distance, std::memory_order_relaxed);
      repeats_.store(0, std::memory_order_relaxed);
      return 0;
    }
    const int repeats = repeats_.load(std::memory_order_relaxed);
    if (repeats >= least_repeats) return distance;
    repeats_.store(repeats + 1, std::memory_order_relaxed);
    return 0;
  }

 private:
  static constexpr int least_repeats = 2;

  std::atomic<std::int64_t> last_ = 0;
  std::atomic<std::int64_t> distance_ = 0;
  std::atomic<int> repeats_ = 0;
};

class ReadAhead {
 public:
  explicit ReadAhead(LogicalFile& file) : file_(file), subfiles_(file.layout().subfile_count()) {}

  void enable(bool enabled) { enabled_ = enabled; }

  // Call before each read of consecutive bytes of the file; does not wait for a disk.
  void before_read(FileOffset begin, std::uint64_t len_bytes) {
    if (!enabled_) return;
    const std::int64_t stride = watch_.next(begin.value);
    // A plain file that is read in sequence is left to the kernel's own read-ahead.
    if (stride >= as_signed(len_bytes) + (subfiles_ > 1 ? 0 : 1)) extend(begin, len_bytes, stride);
  }

 private:
  void extend(FileOffset begin, std::uint64_t len_bytes, std::int64_t stride_bytes);
  void ask_for(FileRange range, std::uint64_t len_bytes, std::int64_t stride_bytes);

  LogicalFile& file_;
  int subfiles_;
  bool enabled_ = true;
  StrideWatch watch_;
  std::atomic<std::int64_t> front_ = 0;  // all bytes below were requested
};

}  // namespace shima
