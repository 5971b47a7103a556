#include "tool/trace/meetings.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

namespace shima::tool {
namespace {

using Arrivals = std::vector<Arrival>;
using ByRank = std::map<int, Arrivals>;

std::string place_of(const ProcessTrace& process, const TraceEvent& event) {
  if (call::is_of_lapi(event.call)) return "LAPI";
  if (call::is_of_dsm(event.call)) return "dsm";
  return process.file_of(event);
}

// How many meetings the ranks have in common. 0: it is not known which.
std::size_t common_count(const ByRank& ranks) {
  if (ranks.size() < 2) return 0;
  std::optional<std::size_t> before_runs;
  std::size_t least = ranks.begin()->second.size();
  std::size_t most = 0;
  for (const auto& [rank, arrivals] : ranks) {
    const auto run =
        std::ranges::find_if(arrivals, [](const Arrival& it) { return it.event->calls > 1; });
    const auto single = static_cast<std::size_t>(run - arrivals.begin());
    if (run != arrivals.end()) before_runs = std::min(before_runs.value_or(single), single);
    least = std::min(least, single);
    most = std::max(most, arrivals.size());
  }
  if (before_runs) return least;
  return least == most ? least : 0;
}

}  // namespace

std::vector<Meeting> find_meetings(const TraceSet& set) {
  std::map<std::string, ByRank> places;
  for (const ProcessTrace& process : set.processes)
    process.for_each([&](const TraceEvent& event) {
      if (call::is_meeting(event.call) && event.background == 0)
        places[place_of(process, event)][process.rank].push_back(
            {process.rank, process.begin_of(event), &event});
    });
  std::vector<Meeting> meetings;
  for (const auto& [place, ranks] : places) {
    const std::size_t count = common_count(ranks);
    for (std::size_t i = 0; i < count; ++i) {
      Meeting& meeting = meetings.emplace_back();
      for (const auto& [rank, arrivals] : ranks) meeting.arrivals.push_back(arrivals[i]);
      meeting.last = static_cast<std::size_t>(
          std::ranges::max_element(meeting.arrivals, {}, &Arrival::begin_ns) -
          meeting.arrivals.begin());
    }
  }
  return meetings;
}

LastIn find_last_in(const std::vector<Meeting>& meetings) {
  LastIn last_in;
  for (const Meeting& meeting : meetings)
    for (const Arrival& one : meeting.arrivals)
      if (call::is_of_lapi(one.event->call) || call::is_of_dsm(one.event->call))
        last_in[one.event] = meeting.last_in().rank;
  return last_in;
}

}  // namespace shima::tool
