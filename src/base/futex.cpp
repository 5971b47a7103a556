#include "base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace shima {

void futex_wait(const FutexWord& word, std::uint32_t expected, std::uint32_t timeout_us) {
  const timespec timeout{.tv_sec = static_cast<time_t>(timeout_us / 1000000U),
                         .tv_nsec = static_cast<long>(timeout_us % 1000000U) * 1000L};
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
}

void futex_wake(const FutexWord& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE, count, nullptr, nullptr, 0);
}

}  // namespace shima
