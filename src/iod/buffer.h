// Memory for the data of one message, which is not cleared; taken out of an allowance.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "base/copy/page_bytes.h"
#include "iod/allowance.h"

namespace shima::iod {

class Buffer {
 public:
  explicit Buffer(Allowance& allowance) : allowance_(allowance) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { release(); }

  // The former content is lost. Waits if the allowance is used up.
  std::span<std::byte> take(std::size_t len_bytes) {
    reserve(len_bytes);
    len_bytes_ = len_bytes;
    return {bytes_.get(), len_bytes};
  }
  // Takes a copy of the bytes, of which there may be none.
  void put(std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, take(bytes.size()).begin());
  }
  // Afterwards take() of as much does not wait. The former content is lost if there is less room.
  void reserve(std::size_t len_bytes) {
    if (len_bytes <= capacity_) return;
    release();
    allowance_.take(len_bytes);
    capacity_ = len_bytes;
    bytes_ = make_page_bytes(len_bytes);
  }
  void cut(std::size_t len_bytes) { len_bytes_ = len_bytes; }
  [[nodiscard]] std::span<std::byte> bytes() const { return {bytes_.get(), len_bytes_}; }
  [[nodiscard]] bool holds_memory() const { return capacity_ > 0; }
  void release() {
    bytes_.reset();
    len_bytes_ = 0;
    if (capacity_ > 0) allowance_.give_back(std::exchange(capacity_, 0));
  }

 private:
  Allowance& allowance_;
  PageBytes bytes_;
  std::size_t capacity_ = 0;
  std::size_t len_bytes_ = 0;
};

}  // namespace shima::iod
