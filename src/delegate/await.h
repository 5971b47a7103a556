// Waiting between the two sides of a ring.
//
// A sleeper registers in the Event and then checks once more before it sleeps; the other side
// stores its data and then calls Event::wake. A sleeper that is killed leaves its registration
// behind: later wakes then cost a system call, but nothing blocks. A process that is killed before
// its wake delays the sleeper by one slice.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/futex.h"
#include "base/result.h"
#include "ipc/wait.h"

namespace shima::delegate {

// How often a waiter checks that the process it waits for lives.
inline constexpr std::chrono::milliseconds check_period{20};

class CheckTimer {
 public:
  [[nodiscard]] bool is_due() {
    const auto now = Clock::now();
    if (now < next_) return false;
    next_ = now + check_period;
    return true;
  }

 private:
  Clock::time_point next_ = Clock::now() + check_period;
};

struct Patience {
  std::uint32_t spin_us = 0;  // time to spin before sleeping; needs a core per waiter
  std::optional<Clock::time_point> deadline;
};

// Spins for `patience.spin_us`; false if `ready()` was not true by then.
template <class Ready, class Check>
[[nodiscard]] Result<bool> spin(const Patience& patience, Ready ready, Check check) {
  constexpr int looks_between_times = 64;
  auto until = Clock::now() + std::chrono::microseconds(patience.spin_us);
  if (patience.deadline) until = std::min<Clock::time_point>(until, *patience.deadline);
  CheckTimer timer;
  do {
    for (int i = 0; i < looks_between_times; ++i) {
      if (ready()) return true;
      relax_core();
    }
    if (timer.is_due()) SHIMA_TRY(check());
  } while (Clock::now() < until);
  return false;
}

// Waits until `ready()` is true and the other side wakes the event. Calls `check()` periodically;
// its error ends the wait. False: the deadline has passed.
template <class Ready, class Check>
[[nodiscard]] Result<bool> await(Event& event, const Patience& patience, Ready ready, Check check) {
  if (ready()) return true;
  if (patience.spin_us > 0) {
    SHIMA_TRY_ASSIGN(const bool came, spin(patience, ready, check));
    if (came) return true;
  }
  CheckTimer timer;
  while (true) {
    auto slice = std::chrono::microseconds(check_period);
    if (patience.deadline) {
      const auto left = *patience.deadline - Clock::now();
      if (left <= Clock::duration::zero()) return false;
      slice = std::min(slice, std::chrono::ceil<std::chrono::microseconds>(left));
    }
    const std::uint32_t seen = event.word.load(std::memory_order_seq_cst);
    event.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const bool came = ready();
    if (!came) futex_wait(event.word, seen, static_cast<std::uint32_t>(slice.count()));
    event.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    if (came || ready()) return true;
    if (timer.is_due()) SHIMA_TRY(check());
  }
}

}  // namespace shima::delegate
