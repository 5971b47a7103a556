#include "base/process/thread_order.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace shima {
namespace {

bool membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

bool find_out() {
#ifdef __SANITIZE_THREAD__
  return false;  // it does not see this order
#else
  const long known = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return known > 0 && (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
         membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
         membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
#endif
}

}  // namespace

bool can_order_threads() {
  static const bool can = find_out();
  return can;
}

void order_threads() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (can_order_threads()) membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

}  // namespace shima
