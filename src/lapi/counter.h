// Counters of LAPI: words anywhere in a task's memory.
//
// A counter remembers which task has made it grow last. After the loss of a task, that tells which
// waits can still end (Engine::can_grow).
#pragma once

#include <lapi.h>

#include <atomic>
#include <cstdint>

namespace shima::lapi {

inline int value_of(lapi_cntr_t& counter) {
  return std::atomic_ref(counter.value).load(std::memory_order_seq_cst);
}

inline void set(lapi_cntr_t& counter, int value) {
  std::atomic_ref(counter.last).store(0, std::memory_order_relaxed);
  std::atomic_ref(counter.value).store(value, std::memory_order_seq_cst);
}

// What has been stored before is visible to threads that see the new value. A thread that looks at
// the counter after it has shown that it sleeps sees the new value, or is seen to sleep.
inline void grow(lapi_cntr_t& counter, int source) {
  std::atomic_ref(counter.last).store(static_cast<unsigned>(source) + 1, std::memory_order_relaxed);
  std::atomic_ref(counter.value).fetch_add(1, std::memory_order_seq_cst);
}

// The task that has made it grow last, or -1.
inline int last_source(lapi_cntr_t& counter) {
  return static_cast<int>(std::atomic_ref(counter.last).load(std::memory_order_relaxed)) - 1;
}

// Subtracts `value` if the counter is as large.
inline bool take(lapi_cntr_t& counter, int value) {
  std::atomic_ref word(counter.value);
  int seen = word.load(std::memory_order_seq_cst);
  while (seen >= value)
    if (word.compare_exchange_weak(seen, seen - value, std::memory_order_acq_rel)) return true;
  return false;
}

inline lapi_cntr_t* counter_at(std::uint64_t address) {
  return reinterpret_cast<lapi_cntr_t*>(address);
}

}  // namespace shima::lapi
