// The memory of a message; its bytes are not initialised.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace shima {

struct MessageSpares;

// Keeps the memory of a buffer for another one, or frees it.
struct ReturnMessage {
  std::shared_ptr<MessageSpares> spares;  // null: free it
  std::size_t capacity_bytes = 0;

  void operator()(std::byte* bytes) const noexcept;
};

class MessageBuffer {
 public:
  MessageBuffer() = default;
  explicit MessageBuffer(std::size_t capacity_bytes)
      : MessageBuffer(Memory(new std::byte[capacity_bytes]), capacity_bytes) {}

  [[nodiscard]] std::size_t capacity_bytes() const { return capacity_bytes_; }
  // At most the capacity.
  void set_len_bytes(std::size_t len_bytes) { len_bytes_ = len_bytes; }
  [[nodiscard]] std::span<std::byte> bytes() { return {bytes_.get(), len_bytes_}; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {bytes_.get(), len_bytes_}; }

 private:
  friend class MessageMemory;
  using Memory = std::unique_ptr<std::byte[], ReturnMessage>;

  MessageBuffer(Memory bytes, std::size_t capacity_bytes)
      : bytes_(std::move(bytes)), capacity_bytes_(capacity_bytes), len_bytes_(capacity_bytes) {}

  Memory bytes_;
  std::size_t capacity_bytes_ = 0;
  std::size_t len_bytes_ = 0;
};

// Memory of messages that is used again, as new memory costs a page fault for each of its pages.
// Buffers may outlive it, and be destroyed by other threads.
class MessageMemory {
 public:
  explicit MessageMemory(std::size_t most_spares);

  // A buffer of this length, and of at least this capacity.
  [[nodiscard]] MessageBuffer buffer(std::size_t len_bytes);

 private:
  std::shared_ptr<MessageSpares> spares_;
};

}  // namespace shima
