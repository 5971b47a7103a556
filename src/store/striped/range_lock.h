// A lock on a range of a file, held for the lifetime of the object.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/units.h"
#include "store/striped/logical_file.h"

namespace shima {

class RangeLock {
 public:
  // Blocks until the range is free.
  [[nodiscard]] static Result<RangeLock> take(LogicalFile& file, FileRange range, bool exclusive) {
    SHIMA_TRY(file.lock(range, exclusive));
    return RangeLock(file, range);
  }
  // file_in_use if the range is not free until then.
  [[nodiscard]] static Result<RangeLock> take_until(Clock::time_point end, LogicalFile& file,
                                                    FileRange range, bool exclusive) {
    constexpr std::chrono::microseconds longest_pause{10'000};
    std::chrono::microseconds pause{100};
    while (true) {
      SHIMA_TRY_ASSIGN(const bool locked, file.try_lock(range, exclusive));
      if (locked) return RangeLock(file, range);
      if (Clock::now() >= end) return fail(Code::file_in_use, "");
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, longest_pause);
    }
  }
  RangeLock(RangeLock&& other) noexcept
      : file_(std::exchange(other.file_, nullptr)), range_(other.range_) {}
  RangeLock& operator=(RangeLock&&) = delete;
  RangeLock(const RangeLock&) = delete;
  RangeLock& operator=(const RangeLock&) = delete;
  ~RangeLock() {
    if (file_ != nullptr) file_->unlock(range_);
  }

 private:
  RangeLock(LogicalFile& file, FileRange range) : file_(&file), range_(range) {}

  LogicalFile* file_;
  FileRange range_;
};

}  // namespace shima
