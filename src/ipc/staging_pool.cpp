#include "ipc/staging_pool.h"

#include <algorithm>
#include <tuple>

namespace shima {

namespace {

constexpr const char* name = "shima-staging";
// Memory that is not touched costs little, and that of a smaller buffer would be lost with it.
constexpr std::size_t least_bytes = std::size_t{4} << 20;

}  // namespace

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
  auto made = SharedBuffer::make(std::max(len_bytes, least_bytes), name);
  return made || len_bytes >= least_bytes ? std::move(made) : SharedBuffer::make(len_bytes, name);
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
