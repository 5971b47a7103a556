// The machine's monotonic clock for traces of calls that enter the kernel, at half its cost.
//
// The system's clock costs a traced call more than all else. Where it is made of the processor's
// counter, as on most machines, a trace reads that counter itself: two readings of both, some time
// apart, tell how the counter advances, and what it shows is taken as time until about as long
// after the later one. On other machines, while a thread's first calls are traced, and whenever
// counter and clock have not gone on alike, it is the clock itself.
//
// The processor may read the counter before what comes before it in the program is complete, which
// the system's clock prevents. So times shorter than a microsecond need that one.
#pragma once

#include <cstdint>
#include <optional>

namespace shima {

// The counter and the clock at one time.
struct ClockPair {
  std::uint64_t ticks = 0;
  std::uint64_t ns = 0;
};

// How the time follows from the counter between two looks at the clock. Pure.
class TickScale {
 public:
  static constexpr std::uint64_t least_ns = 2'000'000;   // between two pairs
  static constexpr std::uint64_t most_ns = 100'000'000;  // that a scale is used

  // Nothing if the pairs are too near each other, or the counter has not advanced like one.
  [[nodiscard]] static std::optional<TickScale> between(const ClockPair& first,
                                                        const ClockPair& last);

  // Whether the counter may still be read with it: as long after the last pair as that was after
  // the first.
  [[nodiscard]] bool covers(std::uint64_t ticks) const { return ticks - last_.ticks < len_ticks_; }
  // `ticks`: covered.
  [[nodiscard]] std::uint64_t ns(std::uint64_t ticks) const {
    return last_.ns + ((ticks - last_.ticks) * ns_per_tick_ >> fraction_bits);
  }
  // Whether the counter advances as in the other. The system slews its clock a little.
  [[nodiscard]] bool agrees_with(const TickScale& other) const;

 private:
  TickScale() = default;
  static constexpr int fraction_bits = 32;

  ClockPair last_;
  std::uint64_t len_ticks_ = 0;
  std::uint64_t ns_per_tick_ = 0;  // with fraction_bits
};

// A thread's readings, and the scale that follows from them. Pure.
class TickClock {
 public:
  // The time, if the counter tells it.
  [[nodiscard]] std::optional<std::uint64_t> ns(std::uint64_t ticks) const {
    if (!scale_ || !scale_->covers(ticks)) return std::nullopt;
    return scale_->ns(ticks);
  }
  // Whether it is time for another pair.
  [[nodiscard]] bool is_due(std::uint64_t ns) const {
    return !last_ || ns >= last_->ns + TickScale::least_ns;
  }
  // The counter is used once two intervals agree.
  void take(const ClockPair& now);

 private:
  std::optional<ClockPair> last_;
  std::optional<TickScale> newest_;
  std::optional<TickScale> scale_;
};

namespace trace {

// The system's monotonic clock.
[[nodiscard]] std::uint64_t now_ns() noexcept;

// Lets call_time_ns() read the counter, if the system trusts it now. Not at the same time in two
// threads.
void start_clock() noexcept;
// The same, perhaps by the counter. Of two readings in one thread, the later one may be smaller, by
// as much as the counter has differed from the clock since the last pair: nanoseconds, but more
// while the system corrects its clock.
[[nodiscard]] std::uint64_t call_time_ns() noexcept;
// Compares counter and clock, if it is time for that; outside of what is measured, because it takes
// a microsecond. `now`: of call_time_ns().
void keep_clock(std::uint64_t now) noexcept;

}  // namespace trace

}  // namespace shima
