// A lock on a range of a plain file, held as long as the object lives.
#pragma once

#include <utility>

#include "base/units.h"
#include "store/subfile.h"

namespace shima {

class RangeLock {
 public:
  // Blocks until the range is free.
  [[nodiscard]] static Result<RangeLock> take(Subfile& file, FileRange range, bool exclusive) {
    SHIMA_TRY(file.lock(TargetOffset{range.begin.value}, range.len_bytes(), exclusive));
    return RangeLock(file, range);
  }
  RangeLock(RangeLock&& other) noexcept
      : file_(std::exchange(other.file_, nullptr)), range_(other.range_) {}
  RangeLock& operator=(RangeLock&&) = delete;
  RangeLock(const RangeLock&) = delete;
  RangeLock& operator=(const RangeLock&) = delete;
  ~RangeLock() {
    if (file_ != nullptr) file_->unlock(TargetOffset{range_.begin.value}, range_.len_bytes());
  }

 private:
  RangeLock(Subfile& file, FileRange range) : file_(&file), range_(range) {}

  Subfile* file_;
  FileRange range_;
};

}  // namespace shima
