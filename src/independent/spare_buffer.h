// A buffer that is kept between calls. The C library gets large memory from the kernel for each
// call and gives it back after it, and the first touch of each page then costs several times as
// much as the copy of its bytes. A call that finds the buffer on loan to another thread has one of
// its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

#include "base/copy/page_bytes.h"

namespace shima {

class SpareBuffer {
 public:
  // Of smaller ones the C library keeps the memory. Larger ones are for files of which is not known
  // that they are cached.
  static constexpr std::size_t least_bytes = std::size_t{64} << 10;
  static constexpr std::size_t most_bytes = (std::size_t{256} << 10) + (std::size_t{64} << 10);

  // A buffer on loan, of undefined content; the SpareBuffer outlives it.
  class Loan {
   public:
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan() {
      if (home_ != nullptr) home_->on_loan_.clear(std::memory_order_release);
    }

    [[nodiscard]] std::byte* get() const {
      return home_ != nullptr ? home_->bytes_.get() : own_.get();
    }

   private:
    friend SpareBuffer;
    explicit Loan(PageBytes own) : own_(std::move(own)) {}
    explicit Loan(SpareBuffer* home) : home_(home) {
      // Pages that no call touches take no memory.
      if (!home->bytes_) home->bytes_ = make_page_bytes(most_bytes);
    }

    PageBytes own_;
    SpareBuffer* home_ = nullptr;
  };

  // A buffer of so many bytes or more. Any thread; with `spare` null nothing is kept.
  [[nodiscard]] static Loan take(SpareBuffer* spare, std::size_t len_bytes) {
    if (spare == nullptr || len_bytes < least_bytes || len_bytes > most_bytes ||
        spare->on_loan_.test_and_set(std::memory_order_acquire))
      return Loan(make_page_bytes(len_bytes));
    return Loan(spare);
  }

 private:
  std::atomic_flag on_loan_;  // guards bytes_
  PageBytes bytes_;
};

}  // namespace shima
