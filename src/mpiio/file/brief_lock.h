// A lock for sections of a few instructions: acquiring it is one atomic operation, releasing it a
// store. A thread that finds it taken sleeps shortly, which should be rare.
#pragma once

#include <unistd.h>

#include <atomic>

namespace shima {

class BriefLock {
 public:
  void lock() {
    while (taken_.exchange(true, std::memory_order_acquire)) ::usleep(1);
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace shima
