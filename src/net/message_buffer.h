// The memory of a message; its bytes are not initialised.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace shima {

class MessageBuffer {
 public:
  MessageBuffer() = default;
  explicit MessageBuffer(std::size_t capacity_bytes)
      : bytes_(std::make_unique_for_overwrite<std::byte[]>(capacity_bytes)),
        capacity_bytes_(capacity_bytes),
        len_bytes_(capacity_bytes) {}

  [[nodiscard]] std::size_t capacity_bytes() const { return capacity_bytes_; }
  // At most the capacity.
  void set_len_bytes(std::size_t len_bytes) { len_bytes_ = len_bytes; }
  [[nodiscard]] std::span<std::byte> bytes() { return {bytes_.get(), len_bytes_}; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {bytes_.get(), len_bytes_}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_bytes_ = 0;
  std::size_t len_bytes_ = 0;
};

}  // namespace shima
