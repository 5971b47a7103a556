#include "observe/trace_runs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <ctime>
#include <limits>

#include "base/thread_object.h"
#include "observe/board.h"
#include "observe/trace_clock.h"

namespace shima::trace {
namespace {

// By which calls of a run have about one size.
std::uint8_t size_bits_of(const ShortCall& call) {
  return static_cast<std::uint8_t>(std::bit_width(call.bytes));
}

// Which calls are short, how long a run lasts, and how many times as long as what its calls access
// the part of a file may be in which they lie.
struct Grain {
  std::uint32_t short_ns = 0;  // 0: none is
  std::uint64_t run_ns = 0;
  std::uint32_t most_spread = 0;
};

// What its next call reads, in one line of the cache.
struct alignas(64) Run {
  CallPlace place;
  int task = 0;
  std::uint16_t file = 0;
  std::uint8_t size_bits = 0;
  TraceEvent* event = nullptr;
  std::uint64_t until_ns = 0;
  std::uint32_t short_ns = 0;
  std::uint32_t most_spread = 0;
  unsigned pauses = 0;
  // A call between the lowest byte and this one is near the others. Of the last run only.
  std::int64_t near_end = 0;

  [[nodiscard]] bool takes(const ShortCall& call) const {
    return event != nullptr && place.site == call.place.site && place.code == call.place.code &&
           task == call.task && file == call.file && size_bits == size_bits_of(call) &&
           pauses == space.pauses.load(std::memory_order_relaxed);
  }
  // Whether the call is short, and began while the run lasted.
  [[nodiscard]] bool admits(const CallTimes& times) const {
    return times.end_ns - times.begin_ns < short_ns && times.begin_ns < until_ns;
  }
};

static_assert(sizeof(Run) == 64);

constexpr std::size_t runs_of_a_set = 4;
using RunSet = std::array<Run, runs_of_a_set>;
using RunSets = std::array<RunSet, 32>;

// Null if there is no memory for the thread's runs.
RunSet* set_of(const ShortCall& call) {
  auto* const sets = thread_object<RunSets>();
  if (sets == nullptr) return nullptr;
  constexpr std::uint64_t mixer = 0x9e3779b97f4a7c15;
  std::uint64_t mixed = reinterpret_cast<std::uintptr_t>(call.place.site) * mixer;
  mixed = (mixed ^ call.place.code) * mixer;
  mixed = (mixed ^ (static_cast<std::uint64_t>(call.task) << 16U | call.file)) * mixer;
  mixed = (mixed ^ static_cast<std::uint64_t>(size_bits_of(call))) * mixer;
  return &(*sets)[(mixed >> 32U) % sets->size()];
}

[[gnu::noinline]] Run* last_of_thread() { return thread_object<Run>(); }

// A copy of the run that the thread's last call has begun or was found to belong to, as most of the
// next ones do: to find them in the sets reads several lines. Null if there is no memory, or no
// more. The first thread's is found without a call.
Run* last_run() {
  static constinit Run of_first;
  return board::is_first_thread() ? &of_first : last_of_thread();
}

// Null if there is none.
Run* run_that_takes(const ShortCall& call) {
  if (Run* const last = last_run(); last != nullptr && last->takes(call)) return last;
  RunSet* const set = set_of(call);
  if (set == nullptr) return nullptr;
  const auto found = std::ranges::find_if(*set, [&](const Run& run) { return run.takes(call); });
  return found != set->end() ? &*found : nullptr;
}

// In the place of an older run of the same calls, else of the one that ends first.
void keep(const Run& run, const ShortCall& call) {
  RunSet* const set = set_of(call);
  Run* const last = last_run();
  if (set == nullptr || last == nullptr) return;
  const auto same = std::ranges::find_if(*set, [&](const Run& other) { return other.takes(call); });
  *(same != set->end() ? same : std::ranges::min_element(*set, {}, &Run::until_ns)) = run;
  *last = run;
}

// All grow by four each time that the room has halved, as far as the time in a run's calls fits
// into an event.
Grain grain_now() {
  constexpr Grain finest{20'000, 1'000'000, 64};
  constexpr int most_halvings = 6;   // a run of 4.1 s
  constexpr int most_for_short = 5;  // a call of 20 ms
  const Room now = room();
  if (now.is_much()) return {};
  const std::uint64_t free = now.all - std::min(now.used, now.all);
  const int halvings =
      std::clamp(std::countl_zero(free) - std::countl_zero(now.all), 0, most_halvings);
  return {finest.short_ns << 2 * std::min(halvings, most_for_short), finest.run_ns << 2 * halvings,
          finest.most_spread << 2 * halvings};
}

// Of the kernel's last tick: read without the processor's counter.
std::uint64_t tick_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t find_cost_of_clock() {
  constexpr int rounds = 16;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (int i = 0; i < rounds; ++i) {
    const std::uint64_t begin = now_ns();
    least = std::min(least, now_ns() - begin);
  }
  return least;
}

// The time of a measured call. Of a tiny one, reading the clock is a large part.
std::uint64_t time_of(const ShortCall& call, const CallTimes& times) {
  const std::uint64_t all = times.end_ns > times.begin_ns ? times.end_ns - times.begin_ns : 0;
  if (!call.is_tiny) return all;
  static const std::uint64_t cost_of_clock = find_cost_of_clock();
  return all - std::min(all, cost_of_clock);
}

std::int64_t end_of(const ShortCall& call) {
  return call.end != 0 ? call.end : call.offset + static_cast<std::int64_t>(call.bytes);
}

// How far from each other the calls of a run and another one may be in their file. A small access
// counts as one of a page.
double most_span(const TraceEvent& run, const ShortCall& call, std::uint32_t most_spread) {
  constexpr double page_bytes = 4096;
  const double accessed =
      static_cast<double>(run.bytes + call.bytes) + page_bytes * static_cast<double>(run.calls);
  return accessed * most_spread;
}

bool is_near(const TraceEvent& run, const ShortCall& call, std::uint32_t most_spread) {
  if (call.file == 0) return true;
  const std::int64_t span = std::max(run.end, end_of(call)) - std::min(run.offset, call.offset);
  return static_cast<double>(span) <= most_span(run, call, most_spread);
}

std::int64_t find_near_end(const TraceEvent& run, const ShortCall& call,
                           std::uint32_t most_spread) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (call.file == 0) return most;
  const double end = static_cast<double>(run.offset) + most_span(run, call, most_spread);
  return end < static_cast<double>(most) ? static_cast<std::int64_t>(end) : most;
}

void extend(TraceEvent& event, const ShortCall& call, const CallTimes& times) {
  ++event.calls;
  event.bytes += call.bytes;
  event.pieces += call.pieces;
  event.offset = std::min(event.offset, call.offset);
  event.end = std::max(event.end, end_of(call));
  if (times.begin_ns == not_measured) return;
  event.busy_ns += static_cast<std::uint32_t>(time_of(call, times));
  event.duration_ns =
      std::max(event.duration_ns, times.end_ns - std::min(event.begin_ns, times.end_ns));
}

TraceEvent* add_event(const ShortCall& call, std::uint64_t begin_ns, std::uint64_t len_ns,
                      bool failed) {
  TraceEvent event = plain_event(call.file);
  event.begin_ns = begin_ns;
  event.duration_ns = len_ns;
  event.busy_ns = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(len_ns, std::numeric_limits<std::uint32_t>::max()));
  event.is_sampled = call.is_tiny ? 1 : 0;
  event.bytes = failed ? 0 : call.bytes;
  event.pieces = call.pieces;
  event.offset = call.offset;
  event.end = end_of(call);
  event.task = call.task;
  event.call = call.place.code;
  event.site = site_number(call.place.site);
  event.failed = failed ? 1 : 0;
  event.background = board::is_first_thread() ? 0 : 1;
  return add(event);
}

// Of a call that the last run does not take at a glance.
[[gnu::noinline]] void end_by_search(const ShortCall& call, const CallTimes& times, bool failed) {
  if (Run* const run = run_that_takes(call); run != nullptr && !failed && run->admits(times) &&
                                             is_near(*run->event, call, run->most_spread)) {
    extend(*run->event, call, times);
    Run* const last = last_run();
    if (last == nullptr) return;
    if (last != run) *last = *run;
    last->near_end = find_near_end(*run->event, call, run->most_spread);
    return;
  }
  const Grain grain = grain_now();
  const std::uint64_t begun_ns = times.begin_ns == not_measured ? now_ns() : times.begin_ns;
  TraceEvent* const event = add_event(call, begun_ns, time_of(call, times), failed);
  if (event == nullptr || failed || times.end_ns - times.begin_ns >= grain.short_ns) return;
  keep({.place = call.place,
        .task = call.task,
        .file = call.file,
        .size_bits = size_bits_of(call),
        .event = event,
        .until_ns = begun_ns + grain.run_ns,
        .short_ns = grain.short_ns,
        .most_spread = grain.most_spread,
        .pauses = space.pauses.load(),
        .near_end = find_near_end(*event, call, grain.most_spread)},
       call);
}

}  // namespace

std::uint64_t begin(const ShortCall& call) noexcept {
  if (call.is_tiny) {
    const Run* const run = run_that_takes(call);
    if (run != nullptr && !is_measured(run->event->calls) && tick_ns() < run->until_ns)
      return not_measured;
  }
  return now_ns();
}

void end(const ShortCall& call, const CallTimes& times, bool failed) noexcept {
  // Little code, in one place: the call and the kernel have evicted it from the caches.
  if (const Run* const last = last_run(); last != nullptr && !failed && last->takes(call) &&
                                          last->admits(times) &&
                                          (call.file == 0 || call.offset >= last->event->offset) &&
                                          end_of(call) <= last->near_end) [[likely]]
    extend(*last->event, call, times);
  else
    end_by_search(call, times, failed);
}

void end(const ShortCall& call, std::uint64_t begin_ns, bool failed) noexcept {
  end(call, {begin_ns, begin_ns == not_measured ? not_measured : now_ns()}, failed);
}

}  // namespace shima::trace
