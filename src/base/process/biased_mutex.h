// A mutex that costs the thread that has created it no atomic operation, as long as no other
// thread takes it.
//
// While the mutex is *biased*, its creator marks it as taken by a plain store, and then looks
// whether it is still biased. Another thread takes an ordinary mutex, revokes the bias, orders the
// accesses of all threads, and waits until the creator does not hold it. From then on the creator
// takes the ordinary mutex, too, and the mutex is biased again after many acquisitions of the
// creator in a row: 64, and twice as many after each revocation, so that the revocations' cost does
// not add up.
//
// Source: Kawachiya, Koseki, Onodera, "Lock reservation", OOPSLA 2002; membarrier(2).
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <mutex>

#include "base/futex.h"
#include "base/process/thread_order.h"

namespace shima {

// The names are those of the standard's Lockable. Not recursive; not for signal handlers; to be
// destroyed only when no call of it is under way. A thread must not end while it holds it.
class BiasedMutex {
 public:
  BiasedMutex() = default;
  BiasedMutex(const BiasedMutex&) = delete;
  BiasedMutex& operator=(const BiasedMutex&) = delete;
  ~BiasedMutex() = default;

  // An address that is unique among the threads that live.
  [[nodiscard]] static const void* thread_tag() {
    static constinit thread_local char tag = 0;
    return &tag;
  }
  [[nodiscard]] bool is_biased() const { return is_biased_.load(std::memory_order_relaxed); }

  void lock() {
    if (lock_biased()) [[likely]]
      return;
    mutex_.lock();
    revoke_bias();
    wait_for_creator();
    is_held_by_bias_ = false;
  }
  // May fail though no thread holds it, while another one tries.
  [[nodiscard]] bool try_lock() {
    if (lock_biased()) [[likely]]
      return true;
    if (!mutex_.try_lock()) return false;
    revoke_bias();
    if (creator_holds_.load(std::memory_order_acquire) != 0) {
      mutex_.unlock();
      return false;
    }
    is_held_by_bias_ = false;
    return true;
  }
  void unlock() {
    if (is_held_by_bias_) [[likely]]
      return unlock_biased();
    if (creator_ != thread_tag())
      acquisitions_in_row_ = 0;
    else if (++acquisitions_in_row_ >= acquisitions_needed_ && can_order_threads())
      is_biased_.store(true, std::memory_order_relaxed);
    mutex_.unlock();
  }

 private:
  static constexpr std::uint32_t long_sleep_us = 1'000'000'000;
  static constexpr std::uint32_t first_acquisitions = 64;
  static constexpr std::uint32_t most_acquisitions = 1U << 20U;

  // Marks it as taken before it looks, for a moment also if the bias has just been revoked.
  [[nodiscard]] bool lock_biased() {
    if (!is_biased_.load(std::memory_order_relaxed) || creator_ != thread_tag()) return false;
    assert(creator_holds_.load(std::memory_order_relaxed) == 0);
    creator_holds_.store(1, std::memory_order_relaxed);
    order_for_others();
    if (!is_biased_.load(std::memory_order_acquire)) [[unlikely]] {
      unlock_biased();
      return false;
    }
    is_held_by_bias_ = true;
    return true;
  }
  void unlock_biased() {
    creator_holds_.store(0, std::memory_order_release);
    order_for_others();
    if (is_awaited_.load(std::memory_order_relaxed)) [[unlikely]]
      futex_wake(creator_holds_, 1);
  }
  // These need mutex_. Afterwards the creator does not take it by the bias any more, but may still
  // hold it.
  void revoke_bias() {
    if (!is_biased_.load(std::memory_order_relaxed)) return;
    is_biased_.store(false, std::memory_order_relaxed);
    order_threads();
    acquisitions_in_row_ = 0;
    acquisitions_needed_ = std::min(2 * acquisitions_needed_, most_acquisitions);
  }
  void wait_for_creator() {
    if (creator_holds_.load(std::memory_order_acquire) == 0) return;
    is_awaited_.store(true, std::memory_order_relaxed);
    order_threads();
    while (creator_holds_.load(std::memory_order_acquire) != 0)
      futex_wait(creator_holds_, 1, long_sleep_us);
    is_awaited_.store(false, std::memory_order_relaxed);
  }

  const void* const creator_ = thread_tag();
  std::atomic<bool> is_biased_{false};
  std::atomic<bool> is_awaited_{false};
  bool is_held_by_bias_ = false;           // written by the holder
  FutexWord creator_holds_{0};             // by the bias; written by the creator alone
  std::uint32_t acquisitions_in_row_ = 0;  // of the creator; these two: under mutex_
  std::uint32_t acquisitions_needed_ = first_acquisitions;
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
    return owner_.load(std::memory_order_relaxed) == BiasedMutex::thread_tag();
  }
  void own() {
    owner_.store(BiasedMutex::thread_tag(), std::memory_order_relaxed);
    ++depth_;
  }

  BiasedMutex mutex_;
  std::atomic<const void*> owner_{nullptr};
  unsigned depth_ = 0;  // written by the owner
};

}  // namespace shima
