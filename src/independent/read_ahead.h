// Reading ahead of a member that reads at a constant stride.
//
// The kernel reads ahead of what is read in sequence in one file. It does not see that one process
// reads 16 KiB every MiB, nor that a sequence leads from one subfile to the next, so that one disk
// works while the others wait. Here the distance between a member's reads is watched; once it has
// come a few times in a row, the bytes that the next reads will want are asked for
// (posix_fadvise(2), POSIX_FADV_WILLNEED), and come into the page cache while the member goes on.
//
// Only the bytes of the pieces are asked for: where the gaps between them are read too, by other
// members, the kernel sees that by itself, and makes longer requests of it than advice would. What
// is in the page cache already costs a look now and then. A wrong guess costs bytes read in vain,
// never a wrong byte.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.h"
#include "store/striped/logical_file.h"

namespace shima {

// The distance between reads. Threads that read at once spoil each other's guesses, nothing else.
class StrideWatch {
 public:
  // Takes note of a read; returns the distance to the next one, or 0 where that cannot be told.
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

  // To be called before each read of consecutive bytes of the file; does not wait for a disk.
  void before_read(FileOffset begin, std::uint64_t len_bytes) {
    if (!enabled_) return;
    const std::int64_t stride = watch_.next(begin.value);
    // A plain file that is read in sequence is the kernel's.
    if (stride >= as_signed(len_bytes) + (subfiles_ > 1 ? 0 : 1)) extend(begin, len_bytes, stride);
  }

 private:
  void extend(FileOffset begin, std::uint64_t len_bytes, std::int64_t stride_bytes);
  void ask_for(FileRange range, std::uint64_t len_bytes, std::int64_t stride_bytes);

  LogicalFile& file_;
  int subfiles_;
  bool enabled_ = true;
  StrideWatch watch_;
  std::atomic<std::int64_t> front_ = 0;  // up to here all was asked for
};

}  // namespace shima
