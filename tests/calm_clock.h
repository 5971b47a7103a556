// A clock for time limits that hold on a busy machine too.
//
// It stops while any process of the machine waits for a processor (the kernel's pressure stall
// information). So "within five seconds" means five seconds in which only the code under test
// could cause a delay. Without that information it is an ordinary clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace shima {

class CalmClock {
 public:
  // Starts at construction.
  CalmClock() : began_(Steady::now()), starved_before_(starved()) {}

  [[nodiscard]] std::chrono::microseconds elapsed() const {
    const auto wall = std::chrono::duration_cast<std::chrono::microseconds>(Steady::now() - began_);
    return std::max(std::chrono::microseconds{0}, wall - (starved() - starved_before_));
  }

 private:
  using Steady = std::chrono::steady_clock;

  // The total time since boot in which some process waited for a processor.
  static std::chrono::microseconds starved() {
    long long total_us = 0;
    if (std::FILE* pressure = std::fopen("/proc/pressure/cpu", "re")) {
      if (std::fscanf(pressure, "some %*s %*s %*s total=%lld", &total_us) != 1) total_us = 0;
      std::fclose(pressure);
    }
    return std::chrono::microseconds{total_us};
  }

  Steady::time_point began_;
  std::chrono::microseconds starved_before_;
};

}  // namespace shima
