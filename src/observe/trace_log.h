// Writes the calls of this process to a trace file, if SHIMA_TRACE names a directory.
//
// The file grows in steps whose disk space is allocated first, so that a full disk ends the trace
// and not the program. At most SHIMA_TRACE_LIMIT bytes of events are written (16 MiB, if it is not
// set); further calls are counted as dropped. A call that is not traced costs a load.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "observe/trace_file.h"

namespace shima {

inline constexpr const char* trace_variable = "SHIMA_TRACE";

// Opens the trace file, if it is wanted. Later calls change rank and tasks. Never fails: what
// prevents the trace is logged once.
void start_trace(int rank, int tasks) noexcept;

namespace trace {

extern constinit std::atomic<bool> on;

// Of a table; 0: no room.
[[nodiscard]] std::uint16_t file_number(std::string_view path) noexcept;
[[nodiscard]] std::uint16_t site_number(const void* site) noexcept;
// The event in the file, which only the caller may change; null if there was no room.
TraceEvent* add(const TraceEvent& event) noexcept;

// How many events are written, and how many there is room for.
struct Room {
  std::uint64_t used = 0;
  std::uint64_t all = 0;
};
[[nodiscard]] Room room() noexcept;

}  // namespace trace

// Afterwards the thread sees the open file.
[[nodiscard]] inline bool is_traced() { return trace::on.load(std::memory_order_acquire); }

// A call that is traced from construction to the end of its life, if the process is traced.
class Traced {
 public:
  Traced() : begin_(is_traced() ? Clock::now() : Clock::time_point{}) {}
  [[nodiscard]] bool on() const { return begin_ != Clock::time_point{}; }
  // Ends it. `event`: without times.
  void end(const CallPlace& place, TraceEvent event) const noexcept;

 private:
  Clock::time_point begin_;
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
