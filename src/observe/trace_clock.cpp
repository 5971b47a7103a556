#include "observe/trace_clock.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>

#include "base/clock.h"
#include "base/thread_object.h"
#include "base/unique_fd.h"
#include "observe/board.h"

namespace shima {

std::optional<TickScale> TickScale::between(const ClockPair& first, const ClockPair& last) {
  if (last.ticks <= first.ticks || last.ns < first.ns + least_ns / 2) return std::nullopt;
  const auto ns = static_cast<double>(last.ns - first.ns);
  const double ns_per_tick = ns / static_cast<double>(last.ticks - first.ticks);
  // Others are no processor's, and their products would not fit.
  constexpr double least = 0.01;
  constexpr double most = 100;
  if (ns_per_tick < least || ns_per_tick > most) return std::nullopt;
  TickScale made;
  made.last_ = last;
  made.ns_per_tick_ = static_cast<std::uint64_t>(std::ldexp(ns_per_tick, fraction_bits));
  made.len_ticks_ =
      static_cast<std::uint64_t>(std::min(ns, static_cast<double>(most_ns)) / ns_per_tick);
  return made;
}

bool TickScale::agrees_with(const TickScale& other) const {
  constexpr double most_difference = 1e-3;  // twice what is usual to correct a clock
  const double ratio = static_cast<double>(ns_per_tick_) / static_cast<double>(other.ns_per_tick_);
  return std::abs(ratio - 1) <= most_difference;
}

namespace {

std::uint64_t ns_of(std::uint64_t ticks, double ns_per_tick) {
  return static_cast<std::uint64_t>(static_cast<double>(ticks) * ns_per_tick);
}

}  // namespace

TickClock::Verdict TickClock::take(const ClockPair& now) {
  const bool is_long = !last_ || now.ns >= last_->ns + TickScale::most_ns;
  const auto next = last_ ? TickScale::between(*last_, now) : std::nullopt;
  const bool is_second = next && !newest_;
  scale_ = next && newest_ && next->agrees_with(*newest_) ? next : std::nullopt;
  newest_ = next;
  last_ = now;
  if (scale_) return Verdict::usable;
  return is_long || is_second ? Verdict::unknown : Verdict::unusable;
}

std::uint64_t TickClock::ns_before(const ClockPair& now, std::uint64_t ticks,
                                   std::uint64_t ns_per_tick) const {
  if (ticks >= now.ticks) return now.ns;
  if (last_ && last_->ticks <= ticks && last_->ns <= now.ns) {
    const double pace =
        static_cast<double>(now.ns - last_->ns) / static_cast<double>(now.ticks - last_->ticks);
    return last_->ns + ns_of(ticks - last_->ticks, pace);
  }
  const double pace = std::ldexp(static_cast<double>(ns_per_tick), -TickScale::fraction_bits);
  return now.ns - std::min(now.ns, ns_of(now.ticks - ticks, pace));
}

namespace trace {

std::uint64_t now_ns() noexcept {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
          .count());
}

namespace {

#if defined(__x86_64__)

std::uint64_t read_ticks() { return __builtin_ia32_rdtsc(); }

// The system's clock is the same counter, of which the kernel has found that all processors agree.
bool counter_is_trusted() {
  const UniqueFd file(::open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                             O_RDONLY | O_CLOEXEC));
  std::array<char, 16> name{};
  const ssize_t len = file ? ::read(file.get(), name.data(), name.size()) : 0;
  return std::string_view(name.data(), static_cast<std::size_t>(std::max<ssize_t>(len, 0))) ==
         "tsc\n";
}

#else

std::uint64_t read_ticks() { return 0; }
bool counter_is_trusted() { return false; }

#endif

// The best of a few: an interrupt may come between the two.
ClockPair read_pair() {
  constexpr int tries = 3;
  ClockPair best;
  std::uint64_t best_ticks = std::numeric_limits<std::uint64_t>::max();
  for (int i = 0; i < tries; ++i) {
    const std::uint64_t before = read_ticks();
    const std::uint64_t ns = now_ns();
    const std::uint64_t between = read_ticks() - before;
    if (between >= best_ticks) continue;
    best_ticks = between;
    best = {before + between / 2, ns};
  }
  return best;
}

constinit std::atomic<bool> may_read_counter{false};

[[gnu::noinline]] TickClock* clock_of_thread() { return thread_object<TickClock>(); }

// Null if there is no memory. The first thread's is found without a call.
TickClock* own_clock() {
  static constinit TickClock first;
  return board::is_first_thread() ? &first : clock_of_thread();
}

// A thread's comparison tells all threads whether to read the counter.
void compare(TickClock& clock, const ClockPair& now) {
  const TickClock::Verdict verdict = clock.take(now);
  if (verdict != TickClock::Verdict::unknown)
    space.ns_per_tick.store(clock.ns_per_tick(), std::memory_order_relaxed);
}

[[gnu::noinline, gnu::cold]] void compare(TickClock& clock) { compare(clock, read_pair()); }

// Of a call that began by the clock.
[[gnu::noinline]] std::uint64_t end_by_clock() {
  const std::uint64_t now = now_ns();
  if (!may_read_counter.load(std::memory_order_relaxed)) return now;
  TickClock* const clock = own_clock();
  if (clock != nullptr && clock->is_due(now)) compare(*clock);
  return now;
}

// Of a call that ends after what the scale covers, or for which the thread has none yet.
[[gnu::noinline]] CallTimes end_by_both(TickClock* clock, std::uint64_t begin_ticks,
                                        std::uint64_t ns_per_tick) {
  const ClockPair now = read_pair();
  const TickClock none;
  const std::uint64_t begin_ns =
      (clock != nullptr ? *clock : none).ns_before(now, begin_ticks, ns_per_tick);
  if (clock != nullptr && clock->is_due(now.ns)) compare(*clock, now);
  return {begin_ns, now.ns};
}

}  // namespace

void start_clock() noexcept {
  may_read_counter = counter_is_trusted();
  space.ns_per_tick = 0;
}

CallTimes CallBegin::end() const noexcept {
  if (ns_per_tick_ == 0) return {reading_, end_by_clock()};
  const std::uint64_t ticks = read_ticks();
  TickClock* const clock = own_clock();
  const auto end_ns = clock != nullptr ? clock->ns(ticks) : std::nullopt;
  if (!end_ns) return end_by_both(clock, reading_, ns_per_tick_);
  const auto begin_ns = clock->ns(reading_);
  if (clock->is_due(*end_ns)) compare(*clock);
  if (begin_ns) return {*begin_ns, *end_ns};
  return {TickClock().ns_before({ticks, *end_ns}, reading_, ns_per_tick_), *end_ns};
}

}  // namespace trace
}  // namespace shima
