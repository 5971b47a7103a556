#include "base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace shima {

// With bits the kernel takes the time at which to end, on the monotonic clock.
bool futex_wait(const FutexWord& word, std::uint32_t expected, std::uint32_t timeout_us,
                WaiterBits as) {
  constexpr long second_ns = 1'000'000'000;
  timespec end{};
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += static_cast<time_t>(timeout_us / 1000000U);
  end.tv_nsec += static_cast<long>(timeout_us % 1000000U) * 1000L;
  if (end.tv_nsec >= second_ns) {
    ++end.tv_sec;
    end.tv_nsec -= second_ns;
  }
  return syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, expected, &end, nullptr, as) == 0 ||
         errno != ETIMEDOUT;
}

void futex_wake(const FutexWord& word, int count, WaiterBits which) {
  syscall(SYS_futex, &word, FUTEX_WAKE_BITSET, count, nullptr, nullptr, which);
}

}  // namespace shima
