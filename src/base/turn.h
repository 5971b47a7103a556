// A mutex that is waited for until a point of time. (ThreadSanitizer knows condition variables with
// such a limit, but not std::timed_mutex.)
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace shima {

class Turn {
 public:
  // The turn, given back by the destructor.
  class Held {
   public:
    Held(Held&& other) noexcept : turn_(std::exchange(other.turn_, nullptr)) {}
    Held& operator=(Held&&) = delete;
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() {
      if (turn_ != nullptr) turn_->give_back();
    }

   private:
    friend class Turn;
    explicit Held(Turn& turn) : turn_(&turn) {}
    Turn* turn_;
  };

  // Nothing if others have it until `end`.
  [[nodiscard]] std::optional<Held> take_until(Clock::time_point end) {
    std::unique_lock hold(mutex_);
    if (!is_free_.wait_until(hold, end, [this] { return !is_taken_; })) return std::nullopt;
    is_taken_ = true;
    return Held(*this);
  }

 private:
  void give_back() {
    const std::lock_guard hold(mutex_);
    is_taken_ = false;
    is_free_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable is_free_;
  bool is_taken_ = false;
};

}  // namespace shima
