// A pool of buffers in which agents collect windows, kept across calls and files.
//
// They are SharedBuffers, so that a buffer serves both methods: the agent accesses other processes'
// memory from it, or the members map it and copy. Reuse saves the page faults of fresh memory.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "ipc/shared_buffer.h"

namespace shima {

class StagingPool {
 public:
  // A buffer of at least `len_bytes`, larger if possible, since larger windows may follow.
  // Thread-safe.
  [[nodiscard]] Result<SharedBuffer> take(std::size_t len_bytes);
  void give_back(SharedBuffer buffer);
  // Counts bytes that are moved through the buffers.
  void count(std::uint64_t len_bytes) { moved_bytes_ += len_bytes; }
  [[nodiscard]] std::uint64_t moved_bytes() const { return moved_bytes_; }

 private:
  std::mutex mutex_;
  std::vector<SharedBuffer> idle_;
  std::atomic<std::uint64_t> moved_bytes_{0};
};

// A buffer borrowed from a pool.
class Staging {
 public:
  Staging() = default;
  [[nodiscard]] static Result<Staging> borrow(StagingPool& pool, std::size_t len_bytes);
  Staging(Staging&& other) noexcept;
  Staging& operator=(Staging&& other) noexcept;
  ~Staging();

  [[nodiscard]] std::byte* data() const { return buffer_.bytes().data(); }
  [[nodiscard]] std::size_t len_bytes() const { return buffer_.bytes().size(); }
  [[nodiscard]] const SharedRef& ref() const { return buffer_.ref(); }
  // See StagingPool.
  void count(std::uint64_t moved_bytes) { pool_->count(moved_bytes); }
  // See SharedBuffer.
  [[nodiscard]] Status touch(BufferPart part) { return buffer_.touch(part); }

 private:
  StagingPool* pool_ = nullptr;
  SharedBuffer buffer_;
};

}  // namespace shima
