// Waits for another task without taking the core that it needs.
//
// A wait spins briefly if every task can have its own core; then it yields a few times; then it
// sleeps on a futex in slices that grow to 2 ms. Between slices it calls the progress hook, because
// a rank asleep in Shima would otherwise stall the messages of the MPI library, and periodically it
// checks that the peers live. The first slice is 50 us for each task that shares the core: what all
// tasks of a core have to do before the wait ends takes so much longer, and each of them that wakes
// to look takes the core from those that have something to do. It is 200 us where each task has a
// scheduler group of its own (autogroup, after setsid), as docs/measurements.md says.
//
// A sleep and its wake cost several times as much as the turn of a task that yields, and where each
// task has a scheduler group of its own, a few yields do not let all others have theirs. So a wait
// that is expected to be brief yields for 25 us for each task of the core, 2 ms at most. In other
// waits that would take the core from a task that moves bytes. With more than ten tasks a core
// whose groups differ, it sleeps at once: yielding takes longer than a wake.
//
// If every task can have its own core, each wait yields for 100 us: on a virtual machine a wake
// takes 50 to 200 us, and the number of spins takes 20 or 100 us, as the processor's pause does. It
// yields, because the task that it waits for may be on its core all the same.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "base/futex.h"
#include "base/process/process_handle.h"
#include "base/result.h"

namespace shima {

struct WaitHooks {
  std::function<void()> progress;  // lets the MPI library handle messages; may be empty
  std::function<Status()> peers;   // an error once a peer has died; may be empty
  int tasks_per_core = 2;          // rounded up
  bool one_group = true;           // they share a scheduler group

  [[nodiscard]] bool may_spin() const { return tasks_per_core <= 1; }
  // Whether a few yields let every other task have its turn, or at least do not cost more than
  // a sleep and its wake.
  [[nodiscard]] bool may_yield() const { return one_group || tasks_per_core <= 10; }
};

// What is known of a wait when it begins.
enum class WaitLength : std::uint8_t { unknown, brief };

// Of WaitHooks.
[[nodiscard]] constexpr int tasks_per_core(int tasks, int cores) {
  return (tasks + cores - 1) / cores;
}

// An error once a process has exited.
[[nodiscard]] Status check_alive(const ProcessIdentity& process);

// A word that waiters of one node sleep on, and the number of sleepers.
struct Event {
  FutexWord word{0};
  std::atomic<std::uint32_t> sleepers{0};

  // Makes the waiters that are meant check again; others may do so too.
  void post(WaiterBits which = all_waiters) {
    word.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) != 0) futex_wake(word, INT32_MAX, which);
  }
  // The same for data that is stored and read with sequential consistency, if waiters check it
  // again after they have registered: costs one load while no task sleeps.
  void wake() {
    if (sleepers.load(std::memory_order_seq_cst) == 0) return;
    word.fetch_add(1, std::memory_order_seq_cst);
    futex_wake(word, INT32_MAX);
  }
};

// Tells the processor that this is a spin loop.
inline void relax_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// How long a wait yields before it sleeps.
[[nodiscard]] inline Clock::duration yield_time(const WaitHooks& hooks, WaitLength length) {
  constexpr auto on_own_core = std::chrono::microseconds(100);
  constexpr auto brief_per_task = std::chrono::microseconds(25);
  constexpr Clock::duration longest_brief = std::chrono::milliseconds(2);
  if (hooks.may_spin()) return on_own_core;
  if (length != WaitLength::brief || !hooks.may_yield()) return {};
  return std::min<Clock::duration>(brief_per_task * hooks.tasks_per_core, longest_brief);
}

// The phase of a wait before it sleeps; returns whether `ready()` became true in it.
template <class Ready>
[[nodiscard]] bool spin_until(const WaitHooks& hooks, Ready ready,
                              WaitLength length = WaitLength::unknown) {
  constexpr int spins = 2000;
  constexpr int yields = 3;
  for (int i = 0; hooks.may_spin() && i < spins; ++i) {
    if (ready()) return true;
    relax_core();
  }
  for (int i = 0; hooks.may_yield() && i < yields; ++i) {
    if (ready()) return true;
    sched_yield();
  }
  const Clock::duration yielding = yield_time(hooks, length);
  if (yielding == Clock::duration::zero()) return ready();
  const auto end = Clock::now() + yielding;
  do {
    if (ready()) return true;
    sched_yield();
  } while (Clock::now() < end);
  return false;
}

// The sleeping phase of a wait: slices of growing length.
class Sleeper {
 public:
  // Posts that share a bit with `as` wake it.
  explicit Sleeper(const WaitHooks& hooks, WaiterBits as = all_waiters)
      : hooks_(hooks),
        as_(as),
        first_slice_us_(first_slice_us(hooks)),
        slice_us_(first_slice_us_) {}

  // Sleeps one slice while `event` still holds `seen`.
  [[nodiscard]] Status slice(Event& event, std::uint32_t seen);
  // The same for waits of which each is for the next change: spins first, unless the last slice
  // has brought none.
  [[nodiscard]] Status change(Event& event, std::uint32_t seen);
  // Looks at intervals whether a peer has died; for waits that sleep in another way.
  [[nodiscard]] Status check_peers();

 private:
  static constexpr std::uint32_t longest_slice_us = 2000;
  [[nodiscard]] static std::uint32_t first_slice_us(const WaitHooks& hooks);

  const WaitHooks& hooks_;
  WaiterBits as_;
  std::uint32_t first_slice_us_;
  std::uint32_t slice_us_;
  bool was_vain_ = false;  // the last slice
  Clock::time_point next_peer_check_ = Clock::now() + std::chrono::milliseconds(100);
};

// Waits until `ready()` is true; the process that makes it true posts `event`.
template <class Ready>
[[nodiscard]] Status wait_until(Event& event, const WaitHooks& hooks, Ready ready,
                                WaitLength length = WaitLength::unknown) {
  if (spin_until(hooks, ready, length)) return {};
  Sleeper sleeper(hooks);
  while (true) {
    const std::uint32_t seen = event.word.load(std::memory_order_seq_cst);
    if (ready()) return {};
    SHIMA_TRY(sleeper.slice(event, seen));
  }
}

}  // namespace shima
