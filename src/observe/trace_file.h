// The file that a process writes while it is traced: a head with tables of names, then events.
//
// Plain data of one machine; `version` changes with every change of the layout, and `shima trace`
// reads only its own. The file is mapped, so that the events of a killed process are in it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "observe/call.h"

namespace shima {

// One call, or a run of short calls (observe/trace_runs.h). Times by the machine's monotonic clock.
struct TraceEvent {
  static constexpr std::uint8_t no_choice = 0xff;

  std::uint64_t begin_ns;
  std::uint64_t duration_ns;
  std::int64_t offset;  // the lowest, of a file or a distributed shared memory
  std::int64_t end;     // behind the highest
  std::uint64_t bytes;  // moved
  std::uint32_t pieces;
  std::uint32_t wait_us;      // in meetings and their sleeps
  std::uint32_t disk_us;      // in system calls on the file
  std::uint32_t exchange_us;  // bytes and descriptions between ranks
  std::uint32_t calls;        // 1, or those of a run
  std::uint32_t busy_ns;      // of a run: in the calls that were measured
  std::int32_t task;          // whose memory, or which has ended a wait; -1: none, or not known
  CallCode call;
  std::uint16_t file;     // index in the table + 1
  std::uint16_t site;     // likewise
  std::uint8_t strategy;  // of a collective call: collective/plan/chooser.h
  std::uint8_t reason;
  std::uint8_t failed;
  std::uint8_t background;  // not in the program's first thread
  std::uint8_t is_sampled;  // of a run: not all calls were measured
  std::uint8_t is_set;      // stored last
};
static_assert(sizeof(TraceEvent) == 80);

// Which calls of a run are measured, if not all, by their number from 0: the first four, then one
// in sixteen.
[[nodiscard]] constexpr bool is_measured(std::uint32_t number) {
  return number < 4 || number % 16 == 0;
}
[[nodiscard]] constexpr std::uint32_t measured_among(std::uint32_t calls) {
  return calls <= 4 ? calls : 4 + (calls - 1) / 16;
}
// The time inside the calls of an event.
[[nodiscard]] constexpr std::uint64_t time_in_calls_ns(const TraceEvent& event) {
  if (event.calls <= 1) return event.duration_ns;
  if (event.is_sampled == 0) return event.busy_ns;
  return std::uint64_t{event.busy_ns} * event.calls / measured_among(event.calls);
}

struct TraceSite {
  std::atomic<std::uint64_t> address;  // of the instruction after the call; 0: free
  std::uint64_t offset;                // in the module
  std::array<char, 240> module;        // path of the program or library
};

struct TraceHead {
  static constexpr std::uint64_t magic_number = 0x6563617254696853;  // "ShiTrace"
  static constexpr std::uint32_t current_version = 2;
  static constexpr std::size_t file_count = 256;
  static constexpr std::size_t site_count = 512;
  static constexpr std::size_t name_bytes = 256;

  std::atomic<std::uint64_t> magic;  // stored last
  std::uint32_t version;
  std::uint32_t head_bytes;
  std::uint32_t event_bytes;
  std::int32_t pid;
  std::atomic<std::int32_t> rank;
  std::atomic<std::int32_t> tasks;
  std::uint64_t monotonic_ns;  // the two clocks at one time
  std::uint64_t realtime_ns;
  std::array<char, 64> host;
  std::array<char, 64> program;
  std::array<char, 40> boot;          // identifies the machine's clock
  std::atomic<std::uint64_t> events;  // begun; some of the last may not be set
  std::atomic<std::uint64_t> dropped;
  std::atomic<std::uint64_t> dropped_bytes;
  std::atomic<std::uint32_t> files;
  std::array<std::array<char, name_bytes>, file_count> file_names;
  std::array<TraceSite, site_count> sites;
};

inline constexpr std::size_t trace_page_bytes = 4096;
inline constexpr std::size_t trace_head_bytes =
    (sizeof(TraceHead) + trace_page_bytes - 1) / trace_page_bytes * trace_page_bytes;

}  // namespace shima
