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

// Sleeps while `word` holds `expected`, at most `timeout_us`; returns at once if it holds another
// value, and may return early.
void futex_wait(const FutexWord& word, std::uint32_t expected, std::uint32_t timeout_us);

// Wakes up to `count` waiters.
void futex_wake(const FutexWord& word, int count);

}  // namespace shima
