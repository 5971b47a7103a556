// The calls in which all ranks meet: which belong together, and which rank came last. Pure.
#pragma once

#include <unordered_map>
#include <vector>

#include "tool/trace/trace_set.h"

namespace shima::tool {

struct Arrival {
  int rank = -1;
  std::int64_t begin_ns = 0;
  const TraceEvent* event = nullptr;
};

// One call of several ranks: a collective one on a file, or a barrier of LAPI or of a distributed
// shared memory.
struct Meeting {
  std::vector<Arrival> arrivals;
  std::size_t last = 0;

  [[nodiscard]] const Arrival& last_in() const { return arrivals[last]; }
  [[nodiscard]] std::int64_t waited_ns(const Arrival& one) const {
    return last_in().begin_ns - one.begin_ns;
  }
};

// The n-th calls of all ranks on a file, of LAPI or of shared memories are one call, if all ranks
// have equally many. From the first run of short calls on, their numbers are not known.
[[nodiscard]] std::vector<Meeting> find_meetings(const TraceSet& set);

// The rank that came last, by the event, for calls of LAPI and of shared memories.
using LastIn = std::unordered_map<const TraceEvent*, int>;
[[nodiscard]] LastIn find_last_in(const std::vector<Meeting>& meetings);

}  // namespace shima::tool
