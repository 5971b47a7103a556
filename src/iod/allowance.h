// Bounds the memory that the connections of a key use for messages.
//
// A connection that would exceed the bound waits for others, in the order of arrival. It holds no
// memory while it waits, so connections cannot wait for each other in a circle.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace shima::iod {

class Allowance {
 public:
  // `most_bytes`: at least what one message needs.
  explicit Allowance(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  void take(std::size_t len_bytes) {
    std::unique_lock hold(mutex_);
    const std::uint64_t number = next_++;
    changed_.wait(hold,
                  [&] { return number == served_ && used_bytes_ + len_bytes <= most_bytes_; });
    ++served_;
    used_bytes_ += len_bytes;
    changed_.notify_all();
  }
  void give_back(std::size_t len_bytes) {
    const std::lock_guard hold(mutex_);
    used_bytes_ -= len_bytes;
    if (next_ != served_) changed_.notify_all();
  }

  // Whether a connection waits.
  [[nodiscard]] bool is_short() {
    const std::lock_guard hold(mutex_);
    return next_ != served_;
  }
  [[nodiscard]] std::size_t used_bytes() {
    const std::lock_guard hold(mutex_);
    return used_bytes_;
  }
  [[nodiscard]] std::size_t most_bytes() const { return most_bytes_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::size_t most_bytes_;
  std::size_t used_bytes_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t served_ = 0;
};

}  // namespace shima::iod
