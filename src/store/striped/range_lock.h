// A lock on a range of a file, held for the lifetime of the object.
#pragma once

#include <utility>

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
