// Bounds the memory that the connections of a key use for messages, or its collective calls for
// their windows.
//
// A connection that would exceed the bound waits for others, in the order of arrival. It holds no
// memory while it waits, so connections cannot wait for each other in a circle.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

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

// Memory that is taken out of an allowance as long as this lives.
class Allowed {
 public:
  Allowed(std::shared_ptr<Allowance> allowance, std::size_t len_bytes)
      : allowance_(std::move(allowance)), len_bytes_(len_bytes) {
    allowance_->take(len_bytes_);
  }
  Allowed(const Allowed&) = delete;
  Allowed& operator=(const Allowed&) = delete;
  ~Allowed() { allowance_->give_back(len_bytes_); }

 private:
  std::shared_ptr<Allowance> allowance_;
  const std::size_t len_bytes_;
};

}  // namespace shima::iod
