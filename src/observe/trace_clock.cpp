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

namespace shima {

std::optional<TickScale> TickScale::between(const ClockPair& first, const ClockPair& last) {
  if (last.ticks <= first.ticks || last.ns < first.ns + least_ns) return std::nullopt;
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

void TickClock::take(const ClockPair& now) {
  const auto next = last_ ? TickScale::between(*last_, now) : std::nullopt;
  scale_ = next && newest_ && next->agrees_with(*newest_) ? next : std::nullopt;
  newest_ = next;
  last_ = now;
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

constinit std::atomic<bool> reads_counter{false};

}  // namespace

void start_clock() noexcept { reads_counter = counter_is_trusted(); }

std::uint64_t call_time_ns() noexcept {
  if (!reads_counter.load(std::memory_order_relaxed)) return now_ns();
  const auto* const clock = thread_object<TickClock>();
  const auto told = clock != nullptr ? clock->ns(read_ticks()) : std::nullopt;
  return told ? *told : now_ns();
}

void keep_clock(std::uint64_t now) noexcept {
  if (!reads_counter.load(std::memory_order_relaxed)) return;
  auto* const clock = thread_object<TickClock>();
  if (clock != nullptr && clock->is_due(now)) clock->take(read_pair());
}

}  // namespace trace
}  // namespace shima
