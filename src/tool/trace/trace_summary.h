// What a report shows of a trace: sums, pictures as grids of numbers, and advice. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tool/trace/meetings.h"
#include "tool/trace/trace_set.h"

namespace shima::tool {

// The calls of one kind from one place of the program.
struct CallSum {
  CallCode call = call::none;
  std::string file;
  std::string site;
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  std::uint64_t pieces = 0;
  std::uint64_t duration_ns = 0;
  std::uint64_t wait_ns = 0;
  std::vector<int> ranks;  // sorted
};

// Bytes of a call, by powers of two: bin 0 has calls of no bytes, bin i those from 2^(i-1) on.
struct SizeHistogram {
  static constexpr std::size_t bins = 42;
  std::array<std::uint64_t, bins> writes{};
  std::array<std::uint64_t, bins> reads{};
};
[[nodiscard]] std::size_t size_bin(std::uint64_t bytes);

// What a rank did in each part of the time: parts of it, 0 to 1.
struct TimelineCell {
  float write = 0;
  float read = 0;
  float wait = 0;   // for other tasks
  float other = 0;  // open, close, sync, set_view...
};
struct TimelineRow {
  std::string name;
  std::vector<TimelineCell> cells;
};

// Bytes of a file, by offset and time. A call's bytes count as spread evenly over its range and
// its time.
struct HeatMap {
  static constexpr std::size_t columns = 120;
  static constexpr std::size_t rows = 48;
  std::string file;
  std::int64_t end = 0;  // of the range of offsets, which begins at 0
  std::uint64_t written = 0;
  std::uint64_t read = 0;
  std::array<std::array<double, columns>, rows> writes{};
  std::array<std::array<double, columns>, rows> reads{};
};

// What a rank has moved to and from another task's memory, and its time waiting for that task.
struct TaskTraffic {
  std::uint64_t sent = 0;
  std::uint64_t fetched = 0;
  std::uint64_t waited_ns = 0;
};

struct Advice {
  std::string text;
  std::vector<std::string> calls;  // which should change
};

struct TraceSummary {
  static constexpr std::size_t timeline_columns = 400;
  std::uint64_t calls = 0;
  std::uint64_t written = 0;
  std::uint64_t read = 0;
  std::uint64_t failed = 0;
  std::uint64_t io_ns = 0;  // of all ranks
  bool has_files = false;   // calls on files
  bool has_tasks = false;   // calls of LAPI or of shared memories
  std::uint64_t sent = 0;   // to other tasks' memory
  std::uint64_t fetched = 0;
  SizeHistogram sizes;
  SizeHistogram transfers;                             // as writes: sent; as reads: fetched
  std::map<std::pair<int, int>, TaskTraffic> traffic;  // by rank and other task
  std::vector<TimelineRow> timeline;
  std::vector<HeatMap> files;    // those with the most bytes first
  std::vector<CallSum> by_site;  // those with the most time first
  std::vector<Advice> advice;
};

[[nodiscard]] TraceSummary summarize(const TraceSet& set);

// Which rank comes last to the collective calls, and what that costs.
struct Lateness {
  int rank = -1;
  std::uint64_t calls = 0;    // collective calls of all ranks
  std::uint64_t last_in = 0;  // those that this rank begins last
  double waited_s = 0;        // by all others together, in those
  double all_waited_s = 0;    // in all calls
};
[[nodiscard]] Lateness find_lateness(const std::vector<Meeting>& meetings);

[[nodiscard]] std::vector<Advice> advise(const std::vector<CallSum>& calls,
                                         const Lateness& lateness);

}  // namespace shima::tool
