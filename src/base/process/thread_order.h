// Memory order between threads that costs only one of two sides.
//
// A thread stores something and then loads what another thread stores; the other does it the other
// way round, and at least one of the two must see what the other has stored. Both need a full
// fence, unless one of them orders the accesses of all threads when it needs it: then the frequent
// side needs no atomic operation. Source: membarrier(2).
#pragma once

#include <atomic>

namespace shima {

// Whether order_threads() works in this process. The first call takes up to 20 ms if the process
// has several threads; the answer stays the same.
[[nodiscard]] bool can_order_threads();

// Each other thread of the process has passed a full fence when this returns, and so has the
// calling one. Costs a system call, and an interrupt for each other thread that runs.
void order_threads();

// The frequent side's part, if can_order_threads(): keeps the compiler from changing the order.
inline void order_for_others() { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace shima
