// What a piece of planning costs: processor time of this thread, and allocations.
//
// Times are the least of several runs, because a machine can only add to them. Allocations are
// counted by the program that contains this library, since only it can replace operator new.
#pragma once

#include <ctime>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace shima::simulate {

// Since the program's start.
struct Allocations {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t freed_bytes = 0;
};
using CountAllocations = Allocations (*)();

struct Cost {
  double cpu_ns = 0;  // of one run
  std::uint64_t allocations = 0;
  std::uint64_t allocated_bytes = 0;
  std::int64_t kept_bytes = 0;  // of these, not freed at the end
};

[[nodiscard]] inline double thread_cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

class Meter {
 public:
  explicit Meter(CountAllocations count) : count_(count) {}

  // The cost of one run of `work` that has run before; it is run `batches` times `runs` times.
  template <class Work>
  [[nodiscard]] Cost measure(int batches, int runs, Work work) const {
    work();
    Cost cost = once(work);
    double least_ns = std::numeric_limits<double>::max();
    for (int batch = 0; batch < batches; ++batch) {
      const double begin = thread_cpu_ns();
      for (int run = 0; run < runs; ++run) work();
      least_ns = std::min(least_ns, (thread_cpu_ns() - begin) / runs);
    }
    cost.cpu_ns = least_ns;
    return cost;
  }
  // The cost of a single run, which may keep memory.
  template <class Work>
  [[nodiscard]] Cost once(Work work) const {
    const Allocations before = count_();
    const double begin = thread_cpu_ns();
    work();
    const double ns = thread_cpu_ns() - begin;
    const Allocations after = count_();
    const std::uint64_t bytes = after.bytes - before.bytes;
    return {.cpu_ns = ns,
            .allocations = after.count - before.count,
            .allocated_bytes = bytes,
            .kept_bytes = static_cast<std::int64_t>(bytes) -
                          static_cast<std::int64_t>(after.freed_bytes - before.freed_bytes)};
  }

 private:
  CountAllocations count_;
};

}  // namespace shima::simulate
