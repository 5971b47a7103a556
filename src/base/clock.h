// Time for counters and waits.
#pragma once

#include <chrono>
#include <cstdint>

namespace shima {

using Clock = std::chrono::steady_clock;

// Adds the time between construction and destruction to a nanosecond counter.
class ScopedTimer {
 public:
  explicit ScopedTimer(std::uint64_t& total_ns) : ScopedTimer(total_ns, true) {}
  // If not `wanted`, adds nothing: reading the clock costs as much as a small read.
  ScopedTimer(std::uint64_t& total_ns, bool wanted)
      : total_ns_(wanted ? &total_ns : nullptr),
        start_(wanted ? Clock::now() : Clock::time_point{}) {}
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;
  ~ScopedTimer() {
    if (total_ns_ == nullptr) return;
    *total_ns_ += static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count());
  }

 private:
  std::uint64_t* total_ns_;
  Clock::time_point start_;
};

}  // namespace shima
