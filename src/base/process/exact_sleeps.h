// Sleeps that end on time.
//
// The kernel ends a sleep up to 50 us late, so as to wake for several threads at once ("timer
// slack", prctl(2)). Where the sleeper is the one that others wait for, that is longer than what it
// waits for takes.
#pragma once

#include <sys/prctl.h>

namespace shima {

// The sleeps of this thread end on time while the object exists.
class ExactSleeps {
 public:
  ExactSleeps() : before_ns_(::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)) {
    if (before_ns_ > 0) ::prctl(PR_SET_TIMERSLACK, shortest_ns, 0, 0, 0);
  }
  ExactSleeps(const ExactSleeps&) = delete;
  ExactSleeps& operator=(const ExactSleeps&) = delete;
  ~ExactSleeps() {
    if (before_ns_ > 0) ::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(before_ns_), 0, 0, 0);
  }

 private:
  static constexpr unsigned long shortest_ns = 1;
  int before_ns_;  // -1: unknown; 0: of a real-time thread
};

}  // namespace shima
