// A pool of buffers in which agents collect windows, kept across calls and files.
//
// They are SharedBuffers, so that a buffer serves both methods: the agent accesses other processes'
// memory from it, or the members map it and copy. Reuse saves the page faults of fresh memory.
#pragma once

#include <mutex>
#include <vector>

#include "ipc/shared_buffer.h"

namespace shima {

class StagingPool {
 public:
  // A buffer of at least `len_bytes`. Thread-safe.
  [[nodiscard]] Result<SharedBuffer> take(std::size_t len_bytes);
  void give_back(SharedBuffer buffer);

 private:
  std::mutex mutex_;
  std::vector<SharedBuffer> idle_;
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
  // See SharedBuffer.
  [[nodiscard]] Status touch(BufferPart part) { return buffer_.touch(part); }

 private:
  StagingPool* pool_ = nullptr;
  SharedBuffer buffer_;
};

}  // namespace shima
