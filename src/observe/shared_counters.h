// The counters of an open file that several threads use. Counts only where statistics are wanted.
#pragma once

#include <mutex>

#include "observe/counters.h"

namespace shima {

class SharedCounters {
 public:
  explicit SharedCounters(bool wanted) : wanted_(wanted) {}

  [[nodiscard]] bool wanted() const { return wanted_; }
  void add(const Counters& counters) {
    if (!wanted_) return;
    const std::lock_guard lock(mutex_);
    sum_.add(counters);
  }
  // Not protected by the lock: for calls that no other thread's call overlaps.
  [[nodiscard]] Counters& sum() { return sum_; }

 private:
  bool wanted_;
  std::mutex mutex_;
  Counters sum_;
};

}  // namespace shima
