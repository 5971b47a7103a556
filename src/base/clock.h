// Time for counters and waits.
#pragma once

#include <chrono>
#include <cstdint>

namespace shima {

using Clock = std::chrono::steady_clock;

// Adds the time between construction and destruction to a nanosecond counter.
class Span {
 public:
  explicit Span(std::uint64_t& total_ns) : total_ns_(total_ns), start_(Clock::now()) {}
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  ~Span() {
    total_ns_ += static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count());
  }

 private:
  std::uint64_t& total_ns_;
  Clock::time_point start_;
};

}  // namespace shima
