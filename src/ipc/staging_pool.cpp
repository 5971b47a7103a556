#include "ipc/staging_pool.h"

#include <algorithm>
#include <tuple>

namespace shima {

Result<SharedBuffer> StagingPool::take(std::size_t len_bytes) {
  {
    const std::lock_guard lock(mutex_);
    const auto fits = std::ranges::find_if(
        idle_, [&](const SharedBuffer& buffer) { return buffer.bytes().size() >= len_bytes; });
    if (fits != idle_.end()) {
      SharedBuffer taken = std::move(*fits);
      idle_.erase(fits);
      return taken;
    }
    idle_.clear();  // too small for this job's windows
  }
  return SharedBuffer::make(len_bytes, "shima-staging");
}

void StagingPool::give_back(SharedBuffer buffer) {
  const std::lock_guard lock(mutex_);
  // Called by destructors; if there is no memory for the list entry, the buffer is freed.
  std::ignore = caught([&]() -> Status {
    idle_.push_back(std::move(buffer));
    return {};
  });
}

Result<Staging> Staging::borrow(StagingPool& pool, std::size_t len_bytes) {
  Staging staging;
  SHIMA_TRY_ASSIGN(staging.buffer_, pool.take(len_bytes));
  staging.pool_ = &pool;
  return staging;
}

Staging::Staging(Staging&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), buffer_(std::move(other.buffer_)) {}

Staging& Staging::operator=(Staging&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

Staging::~Staging() {
  if (pool_ != nullptr) pool_->give_back(std::move(buffer_));
}

}  // namespace shima
