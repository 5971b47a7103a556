// Memory for the data of one message, which is not cleared.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace shima::iod {

class Buffer {
 public:
  // The former content is lost.
  std::span<std::byte> take(std::size_t len_bytes) {
    if (capacity_ < len_bytes) {
      bytes_ = std::make_unique_for_overwrite<std::byte[]>(len_bytes);
      capacity_ = len_bytes;
    }
    len_bytes_ = len_bytes;
    return {bytes_.get(), len_bytes};
  }
  void cut(std::size_t len_bytes) { len_bytes_ = len_bytes; }
  [[nodiscard]] std::span<std::byte> bytes() const { return {bytes_.get(), len_bytes_}; }
  [[nodiscard]] bool holds_memory() const { return capacity_ > 0; }
  void release() { *this = Buffer(); }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t len_bytes_ = 0;
};

}  // namespace shima::iod
