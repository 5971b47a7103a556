// Sleeping and waking on a 32-bit word, across processes that map the same memory.
//
// A waiter registers before it sleeps, so that a post costs no system call when no process sleeps.
// Source: futex(2).
#pragma once

#include <atomic>
#include <cstdint>

namespace shima {

using FutexWord = std::atomic<std::uint32_t>;
static_assert(sizeof(FutexWord) == 4 && FutexWord::is_always_lock_free);

// Which waiters of a word are meant: those that share a bit. One system call wakes several of them
// before the first can take the caller's core.
using WaiterBits = std::uint32_t;
inline constexpr WaiterBits all_waiters = ~WaiterBits{0};

// Sleeps while `word` holds `expected`, at most `timeout_us`; returns at once if it holds another
// value, and may return early. Returns false if the time has passed.
bool futex_wait(const FutexWord& word, std::uint32_t expected, std::uint32_t timeout_us,
                WaiterBits as = all_waiters);

// Wakes up to `count` waiters of those meant.
void futex_wake(const FutexWord& word, int count, WaiterBits which = all_waiters);

}  // namespace shima
