// A mutex that costs the thread that has made it no atomic operation, as long as no other takes it.
//
// While the mutex *favours* its maker, the maker says that it is inside by a plain store, and then
// looks whether it is still favoured. Another thread takes an ordinary mutex, ends the favour,
// orders the accesses of all threads, and waits until the maker is not inside. Then the maker takes
// the ordinary mutex too, until it has taken it many times in turn: each time twice as often as
// before, so that what the other threads pay for the end of a favour does not add up.
//
// Source: Kawachiya, Koseki, Onodera, "Lock reservation", OOPSLA 2002; membarrier(2).
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "base/futex.h"
#include "base/process/thread_order.h"

namespace shima {

// The names are those of the standard's Lockable.
class BiasedMutex {
 public:
  BiasedMutex() = default;
  BiasedMutex(const BiasedMutex&) = delete;
  BiasedMutex& operator=(const BiasedMutex&) = delete;
  ~BiasedMutex() = default;

  // What differs between the threads that live: an address.
  [[nodiscard]] static const void* own_mark() {
    static constinit thread_local char mark = 0;
    return &mark;
  }

  // Whether the maker takes it without an atomic operation at present.
  [[nodiscard]] bool favours_maker() const { return favours_.load(std::memory_order_relaxed); }

  void lock() {
    if (enter_favoured()) [[likely]]
      return;
    mutex_.lock();
    end_favour();
    wait_for_maker();
    is_held_by_favour_ = false;
  }
  [[nodiscard]] bool try_lock() {
    if (enter_favoured()) [[likely]]
      return true;
    if (!mutex_.try_lock()) return false;
    end_favour();
    if (inside_.load(std::memory_order_acquire) != 0) {
      mutex_.unlock();
      return false;
    }
    is_held_by_favour_ = false;
    return true;
  }
  void unlock() {
    if (is_held_by_favour_) [[likely]]
      return leave_favoured();
    if (!is_maker())
      turns_ = 0;
    else if (++turns_ >= turns_needed_ && can_order_threads())
      favours_.store(true, std::memory_order_relaxed);
    mutex_.unlock();
  }

 private:
  static constexpr std::uint32_t long_sleep_us = 1'000'000'000;
  static constexpr std::uint32_t first_turns = 64;
  static constexpr std::uint32_t most_turns = 1U << 20U;

  [[nodiscard]] bool is_maker() const { return maker_ == own_mark(); }

  [[nodiscard]] bool enter_favoured() {
    if (!favours_.load(std::memory_order_relaxed) || !is_maker()) return false;
    inside_.store(1, std::memory_order_relaxed);
    order_for_others();
    if (!favours_.load(std::memory_order_acquire)) [[unlikely]] {
      leave_favoured();
      return false;
    }
    is_held_by_favour_ = true;
    return true;
  }
  void leave_favoured() {
    inside_.store(0, std::memory_order_release);
    order_for_others();
    if (is_awaited_.load(std::memory_order_relaxed)) [[unlikely]]
      futex_wake(inside_, 1);
  }
  // These need mutex_. Afterwards the maker does not stay inside.
  void end_favour() {
    if (!favours_.load(std::memory_order_relaxed)) return;
    favours_.store(false, std::memory_order_relaxed);
    order_threads();
    turns_ = 0;
    turns_needed_ = std::min(2 * turns_needed_, most_turns);
  }
  void wait_for_maker() {
    if (inside_.load(std::memory_order_acquire) == 0) return;
    is_awaited_.store(true, std::memory_order_relaxed);
    order_threads();
    while (inside_.load(std::memory_order_acquire) != 0) futex_wait(inside_, 1, long_sleep_us);
    is_awaited_.store(false, std::memory_order_relaxed);
  }

  const void* const maker_ = own_mark();
  std::atomic<bool> favours_{false};
  std::atomic<bool> is_awaited_{false};
  bool is_held_by_favour_ = false;  // changed by who holds it
  FutexWord inside_{0};             // changed by the maker alone
  std::uint32_t turns_ = 0;         // these two: under mutex_
  std::uint32_t turns_needed_ = first_turns;
  std::mutex mutex_;
};

// The same, but its owner may lock it again.
class RecursiveBiasedMutex {
 public:
  void lock() {
    if (!is_owner()) mutex_.lock();
    own();
  }
  [[nodiscard]] bool try_lock() {
    if (!is_owner() && !mutex_.try_lock()) return false;
    own();
    return true;
  }
  void unlock() {
    if (--depth_ != 0) return;
    owner_.store(nullptr, std::memory_order_relaxed);
    mutex_.unlock();
  }

 private:
  [[nodiscard]] bool is_owner() const {
    return owner_.load(std::memory_order_relaxed) == BiasedMutex::own_mark();
  }
  void own() {
    owner_.store(BiasedMutex::own_mark(), std::memory_order_relaxed);
    ++depth_;
  }

  BiasedMutex mutex_;
  std::atomic<const void*> owner_{nullptr};
  unsigned depth_ = 0;  // changed by the owner
};

}  // namespace shima
