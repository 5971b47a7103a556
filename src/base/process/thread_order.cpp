#include "base/process/thread_order.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace shima {
namespace {

bool membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

bool register_process() { return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }

bool find_out() {
#ifdef __SANITIZE_THREAD__
  return false;  // ThreadSanitizer does not know membarrier
#else
  const long known = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return known > 0 && (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 && register_process() &&
         membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
#endif
}

}  // namespace

bool can_order_threads() {
  static const bool can = find_out();
  return can;
}

// A process that has been restored from a checkpoint may have lost its registration, and the kernel
// may lack memory. A processor keeps no store to itself for as long as a millisecond.
void order_threads() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!can_order_threads() || membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  if (register_process() && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace shima
