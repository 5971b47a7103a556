// The times of traced calls by the machine's monotonic clock, at half its cost for short calls.
//
// The system's clock costs a traced call more than all else. Where it is made of the processor's
// counter, as on most machines, a short call reads that counter when it begins and when it ends:
// two readings of counter and clock, some time apart, tell how the counter advances, and what it
// shows is taken as time until about as long after the later one. What ends later is compared with
// the clock itself. Whether the counter is read is decided for the process: not before two
// intervals of a thread have agreed, nor after two have not.
//
// The processor may read the counter before what comes before it in the program is complete, which
// the system's clock prevents. So times shorter than a microsecond need that one.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "observe/trace_space.h"

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
  static constexpr int fraction_bits = 32;               // of ns_per_tick()

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
  // With fraction_bits.
  [[nodiscard]] std::uint64_t ns_per_tick() const { return ns_per_tick_; }

 private:
  TickScale() = default;
  ClockPair last_;
  std::uint64_t len_ticks_ = 0;
  std::uint64_t ns_per_tick_ = 0;
};

// When a call began and ended.
struct CallTimes {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
};

// A thread's readings, and the scale that follows from them. Pure.
class alignas(64) TickClock {
 public:
  enum class Verdict : std::uint8_t { unknown, usable, unusable };

  // The time, if the counter tells it.
  [[nodiscard]] std::optional<std::uint64_t> ns(std::uint64_t ticks) const {
    if (!scale_ || !scale_->covers(ticks)) return std::nullopt;
    return scale_->ns(ticks);
  }
  // Whether it is time for another pair.
  [[nodiscard]] bool is_due(std::uint64_t ns) const {
    return !last_ || ns >= last_->ns + TickScale::least_ns;
  }
  // The counter is used once two intervals agree, and until two do not. Returns whether it is; of
  // long intervals that do not agree it is not known whether others have seen to it.
  Verdict take(const ClockPair& now);
  [[nodiscard]] std::uint64_t ns_per_tick() const { return scale_ ? scale_->ns_per_tick() : 0; }
  // When the counter showed `ticks`, some time before a pair. `ns_per_tick`: as then known; used if
  // there is no older pair.
  [[nodiscard]] std::uint64_t ns_before(const ClockPair& now, std::uint64_t ticks,
                                        std::uint64_t ns_per_tick) const;

 private:
  std::optional<TickScale> scale_;  // beside last_: a traced call reads both
  std::optional<ClockPair> last_;
  std::optional<TickScale> newest_;
};

namespace trace {

// The system's monotonic clock.
[[nodiscard]] std::uint64_t now_ns() noexcept;

// Lets calls read the counter, if the system trusts it now. Not at the same time in two threads.
void start_clock() noexcept;

// The begin of a call. To read it takes little memory and code: the bytes that a call moves have
// evicted both from the caches.
class CallBegin {
 public:
  CallBegin() = default;
  // Of any call.
  [[nodiscard]] static CallBegin by_clock() { return {now_ns(), 0}; }
  // Of a call that is short as a rule: the counter, if it is read now.
  [[nodiscard]] static CallBegin by_counter() {
#if defined(__x86_64__)
    if (const auto pace = space.ns_per_tick.load(std::memory_order_relaxed); pace != 0)
      return {__builtin_ia32_rdtsc(), pace};
#endif
    return by_clock();
  }
  [[nodiscard]] bool is_set() const { return reading_ != 0; }
  // Of a call that ends now. Afterwards counter and clock are compared, if it is time for that,
  // which takes a microsecond. Of two calls of a thread, the later one may seem to begin before the
  // earlier has ended, by as much as the counter has differed from the clock since the last
  // comparison: nanoseconds, but more while the system corrects its clock.
  [[nodiscard]] CallTimes end() const noexcept;

 private:
  CallBegin(std::uint64_t reading, std::uint64_t ns_per_tick)
      : reading_(reading), ns_per_tick_(ns_per_tick) {}

  std::uint64_t reading_ = 0;
  std::uint64_t ns_per_tick_ = 0;  // at the begin; 0: the reading is a time
};

}  // namespace trace

}  // namespace shima
