// Writes the calls of this process to a trace file, if SHIMA_TRACE names a directory.
//
// The file grows in steps whose disk space is allocated first, so that a full disk ends the trace
// and not the program. At most SHIMA_TRACE_LIMIT bytes of events are written (16 MiB, if it is not
// set); further calls are counted as dropped. A call that is not traced costs a load.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "observe/board.h"
#include "observe/trace_clock.h"
#include "observe/trace_file.h"
#include "observe/trace_space.h"

namespace shima {

inline constexpr const char* trace_variable = "SHIMA_TRACE";

// Opens the trace file, if it is wanted. Later calls change rank and tasks. Never fails: what
// prevents the trace is logged once.
void start_trace(int rank, int tasks) noexcept;

// Calls that the program begins while the trace is paused are not traced. It may be paused before
// it starts.
void pause_trace() noexcept;
void resume_trace() noexcept;

namespace trace {

// Of a table; 0: no room.
[[nodiscard]] std::uint16_t file_number(std::string_view path) noexcept;
[[nodiscard]] std::uint16_t site_number(const void* site) noexcept;
// The place of the next event in the file, which only the caller may change; null, and counted as
// dropped, if there is no room. The event counts once it is published.
[[nodiscard]] inline TraceEvent* next_event(std::uint64_t bytes) noexcept;
inline void publish(TraceEvent& event) noexcept;
// next_event(), filled and published.
TraceEvent* add(const TraceEvent& event) noexcept;

// How many events are written, and how many there is room for.
struct Room {
  std::uint64_t used = 0;
  std::uint64_t all = 0;
  // Else short calls share events (observe/trace_runs.h).
  [[nodiscard]] bool is_much() const { return used < all / 4; }
};
[[nodiscard]] inline Room room() noexcept {
  return {space.head->events.load(std::memory_order_relaxed),
          space.limit_bytes.load(std::memory_order_relaxed) / sizeof(TraceEvent)};
}

// The same, where there may be no room yet.
[[nodiscard]] TraceEvent* make_room(std::uint64_t bytes) noexcept;

inline TraceEvent* next_event(std::uint64_t bytes) noexcept {
  const std::size_t most = space.allocated_bytes.load(std::memory_order_acquire);
  std::atomic<std::uint64_t>& count = space.head->events;
  std::uint64_t mine = count.load(std::memory_order_relaxed);
  do {
    if ((mine + 1) * sizeof(TraceEvent) > most) return make_room(bytes);
  } while (!count.compare_exchange_weak(mine, mine + 1, std::memory_order_relaxed));
  return reinterpret_cast<TraceEvent*>(space.events + mine * sizeof(TraceEvent));
}

inline void publish(TraceEvent& event) noexcept {
  std::atomic_ref(event.is_set).store(1, std::memory_order_release);
  // The memory of those that follow was last used when the file grew.
  constexpr std::size_t ahead_bytes = 192;
  constexpr int for_writing = 1;
  __builtin_prefetch(reinterpret_cast<const std::byte*>(&event) + ahead_bytes, for_writing);
}

}  // namespace trace

// Afterwards the thread sees the open file.
[[nodiscard]] inline bool is_traced() {
  return trace::space.state.load(std::memory_order_acquire) == trace::is_open;
}

// Likewise, but also true while the trace is paused.
[[nodiscard]] inline bool has_trace() {
  return (trace::space.state.load(std::memory_order_acquire) & trace::is_open) != 0;
}

// A call that is traced from construction to the end of its life, if the process is traced.
class Traced {
 public:
  Traced() : Traced(Tracing::as_now) {}
  explicit Traced(Tracing tracing) {
    if (is_on(tracing)) begin_ = trace::CallBegin::by_clock();
  }
  // Of a call that waits for no other process, and so is short as a rule.
  [[nodiscard]] static Traced short_call(Tracing tracing) {
    Traced made(Tracing::no);
    if (is_on(tracing)) made.begin_ = trace::CallBegin::by_counter();
    return made;
  }
  [[nodiscard]] bool on() const { return begin_.is_set(); }
  // Of a call that ends now.
  [[nodiscard]] CallTimes times() const noexcept { return begin_.end(); }
  // Ends it. `event`: without times.
  void end(const CallPlace& place, const TraceEvent& event) const noexcept {
    end_with(place, event.bytes, [&](TraceEvent& to) { to = event; });
  }
  // Likewise, with an event that `fill` makes where it stays: to make a short call's elsewhere and
  // to copy it takes longer than the rest.
  template <class Fill>
  void end_with(const CallPlace& place, std::uint64_t bytes, const Fill& fill) const noexcept {
    const CallTimes times = begin_.end();
    TraceEvent* const event = trace::next_event(bytes);
    if (event == nullptr) return;
    fill(*event);
    event->begin_ns = times.begin_ns;
    event->duration_ns = times.end_ns - std::min(times.begin_ns, times.end_ns);
    event->call = place.code;
    event->site = trace::site_number(place.site);
    event->background = board::is_first_thread() ? 0 : 1;
    trace::publish(*event);
  }

 private:
  static bool is_on(Tracing tracing) {
    return tracing == Tracing::as_now ? is_traced() : tracing == Tracing::yes && has_trace();
  }
  trace::CallBegin begin_;
};

// An event without data.
[[nodiscard]] inline TraceEvent plain_event(std::uint16_t file = 0) {
  TraceEvent event{};
  event.file = file;
  event.calls = 1;
  event.task = -1;
  event.strategy = event.reason = TraceEvent::no_choice;
  return event;
}

}  // namespace shima
