// Writes the calls of this process to a trace file, if SHIMA_TRACE names a directory.
//
// The file grows in steps whose disk space is allocated first, so that a full disk ends the trace
// and not the program. At most SHIMA_TRACE_LIMIT bytes of events are written (16 MiB, if it is not
// set); further calls are counted as dropped. A call that is not traced costs a load.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "observe/trace_clock.h"
#include "observe/trace_file.h"

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

// Bits of the state. A forked process has none of them: it shares the file, and is not traced.
inline constexpr unsigned is_open = 1;
inline constexpr unsigned is_paused = 2;
extern constinit std::atomic<unsigned> state;

// Of a table; 0: no room.
[[nodiscard]] std::uint16_t file_number(std::string_view path) noexcept;
[[nodiscard]] std::uint16_t site_number(const void* site) noexcept;
// The place of the next event in the file, which only the caller may change; null, and counted as
// dropped, if there is no room. The event counts once it is published.
[[nodiscard]] TraceEvent* next_event(std::uint64_t bytes) noexcept;
void publish(TraceEvent& event) noexcept;
// next_event(), filled and published.
TraceEvent* add(const TraceEvent& event) noexcept;

// How many events are written, and how many there is room for.
struct Room {
  std::uint64_t used = 0;
  std::uint64_t all = 0;
};
[[nodiscard]] Room room() noexcept;

}  // namespace trace

// Afterwards the thread sees the open file.
[[nodiscard]] inline bool is_traced() {
  return trace::state.load(std::memory_order_acquire) == trace::is_open;
}

// Likewise, but also true while the trace is paused.
[[nodiscard]] inline bool has_trace() {
  return (trace::state.load(std::memory_order_acquire) & trace::is_open) != 0;
}

// A call that is traced from construction to the end of its life, if the process is traced.
class Traced {
 public:
  Traced() : begin_ns_(is_traced() ? trace::call_time_ns() : 0) {}
  explicit Traced(Tracing tracing) : begin_ns_(is_on(tracing) ? trace::call_time_ns() : 0) {}
  [[nodiscard]] bool on() const { return begin_ns_ != 0; }
  // Ends it. `event`: without times.
  void end(const CallPlace& place, const TraceEvent& event) const noexcept {
    end_with(place, event.bytes, [&](TraceEvent& to) { to = event; });
  }
  // Likewise, with an event that `fill` makes where it stays: to make a short call's elsewhere and
  // to copy it takes longer than the rest.
  template <class Fill>
  void end_with(const CallPlace& place, std::uint64_t bytes, const Fill& fill) const noexcept {
    const std::uint64_t end_ns = trace::call_time_ns();
    TraceEvent* const event = trace::next_event(bytes);
    if (event == nullptr) return;
    fill(*event);
    set_call(*event, place, end_ns);
    trace::publish(*event);
    trace::keep_clock(end_ns);
  }

 private:
  static bool is_on(Tracing tracing) {
    return tracing == Tracing::as_now ? is_traced() : tracing == Tracing::yes && has_trace();
  }
  void set_call(TraceEvent& event, const CallPlace& place, std::uint64_t end_ns) const noexcept;

  std::uint64_t begin_ns_;
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
