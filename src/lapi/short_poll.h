// Whether a wait looks at its sockets for a moment before it sleeps.
//
// Over TCP, a reply comes within tens of microseconds, and so does the next request of a task that
// has got one; a core that sleeps takes longer than that to run again. But a task that looks in
// vain takes the core from the one that it waits for, if they share it. So a moment in vain lets
// the next sleeps begin at once: 1 of them, and twice as many after each further moment in vain, at
// most `most_left_out`.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>

namespace shima::lapi {

// Thread-safe; of threads that wait at the same time, one may undo what another has noted.
class ShortPoll {
 public:
  static constexpr std::chrono::microseconds moment{50};
  static constexpr unsigned most_left_out = 256;

  // Asked once before each sleep: whether the wait may look for a moment.
  [[nodiscard]] bool begin() {
    const unsigned left = to_leave_out_.load(std::memory_order_relaxed);
    if (left == 0) return true;
    to_leave_out_.store(left - 1, std::memory_order_relaxed);
    return false;
  }
  // What the wait looked for has come within the moment.
  void note_success() { next_.store(1, std::memory_order_relaxed); }
  void note_vain() {
    const unsigned next = next_.load(std::memory_order_relaxed);
    to_leave_out_.store(next, std::memory_order_relaxed);
    next_.store(std::min(2 * next, most_left_out), std::memory_order_relaxed);
  }

 private:
  std::atomic<unsigned> to_leave_out_{0};
  std::atomic<unsigned> next_{1};  // how many sleeps the next moment in vain leaves out
};

}  // namespace shima::lapi
