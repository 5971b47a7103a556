#include "tool/trace/trace_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>

namespace shima::tool {
namespace {

// Where a range begins and ends in a number of equal parts.
struct Span {
  double begin = 0;
  double end = 0;

  [[nodiscard]] std::size_t first() const { return static_cast<std::size_t>(begin); }
  [[nodiscard]] std::size_t last(std::size_t count) const {
    return std::min(static_cast<std::size_t>(end), count - 1);
  }
  // How much of part `index` the range covers, 0 to 1.
  [[nodiscard]] double cover(std::size_t index) const {
    const auto low = static_cast<double>(index);
    return std::max(0.0, std::min(end, low + 1) - std::max(begin, low));
  }
};

Span span_in(std::int64_t begin, std::int64_t end, std::int64_t length, std::size_t parts) {
  const double scale = length > 0 ? static_cast<double>(parts) / static_cast<double>(length) : 0;
  const double most = static_cast<double>(parts) - 1e-9;
  Span span{static_cast<double>(begin) * scale, static_cast<double>(end) * scale};
  span.begin = std::clamp(span.begin, 0.0, most);
  span.end = std::clamp(span.end, span.begin, most);
  return span;
}

Span time_of(const TraceSet& set, const ProcessTrace& process, const TraceEvent& event,
             std::size_t parts) {
  return span_in(process.begin_of(event) - set.begin_ns, process.end_of(event) - set.begin_ns,
                 set.end_ns - set.begin_ns, parts);
}

float TimelineCell::* part_of(CallCode code) {
  if (call::is_write(code) || call::sends(code)) return &TimelineCell::write;
  if (call::is_data(code) || call::fetches(code)) return &TimelineCell::read;
  return call::is_wait(code) ? &TimelineCell::wait : &TimelineCell::other;
}

// Of a run of short calls, the time between them is not theirs.
void add_to_timeline(TimelineRow& row, const Span& time, const TraceEvent& event) {
  auto TimelineCell::* const part = part_of(event.call);
  const double in_calls = static_cast<double>(time_in_calls_ns(event)) /
                          static_cast<double>(std::max<std::uint64_t>(event.duration_ns, 1));
  const double share = event.calls > 1 ? std::min(in_calls, 1.0) : 1.0;
  for (std::size_t i = time.first(); i <= time.last(row.cells.size()); ++i)
    row.cells[i].*part = std::min(
        1.0F, row.cells[i].*part + static_cast<float>(std::max(time.cover(i) * share, 1e-3)));
}

void add_to_map(HeatMap& map, const Span& time, const TraceEvent& event) {
  const bool write = call::is_write(event.call);
  (write ? map.written : map.read) += event.bytes;
  const Span place = span_in(event.offset, event.end, map.end, HeatMap::rows);
  auto& cells = write ? map.writes : map.reads;
  const double times = std::max(time.end - time.begin, 1e-9);
  const double places = std::max(place.end - place.begin, 1e-9);
  for (std::size_t y = place.first(); y <= place.last(HeatMap::rows); ++y) {
    const double in_row = places > 1e-9 ? place.cover(y) / places : 1;
    for (std::size_t x = time.first(); x <= time.last(HeatMap::columns); ++x) {
      const double in_column = times > 1e-9 ? time.cover(x) / times : 1;
      cells[y][x] += static_cast<double>(event.bytes) * in_row * in_column;
    }
  }
}

class Summing {
 public:
  Summing(const TraceSet& set, TraceSummary& summary) : set_(set), summary_(summary) {}

  void find_files() {
    for (const ProcessTrace& process : set_.processes)
      process.for_each([&](const TraceEvent& event) {
        if (!call::is_data(event.call) || event.bytes == 0) return;
        HeatMap& map = maps_[process.file_of(event)];
        map.end = std::max(map.end, event.end);
      });
    for (auto& [name, map] : maps_) map.file = name;
  }

  void add(std::size_t index) {
    const ProcessTrace& process = set_.processes[index];
    TimelineRow& row = row_of(process);
    process.for_each([&](const TraceEvent& event) {
      add_event(process, event);
      add_to_timeline(row, time_of(set_, process, event, row.cells.size()), event);
    });
  }

  // Meetings of tasks: who waits is clear, for whom is not in the event.
  void add(const Meeting& meeting) {
    for (const Arrival& one : meeting.arrivals) {
      const std::int64_t waited_ns = meeting.waited_ns(one);
      if (waited_ns > 0 && call::is_wait(one.event->call))
        summary_.traffic[{one.rank, meeting.last_in().rank}].waited_ns +=
            static_cast<std::uint64_t>(waited_ns);
    }
  }

  void finish() {
    for (auto& [key, sum] : sums_) summary_.by_site.push_back(std::move(sum));
    std::ranges::stable_sort(summary_.by_site, std::greater<>(), &CallSum::duration_ns);
    for (auto& [name, map] : maps_) summary_.files.push_back(std::move(map));
    std::ranges::stable_sort(summary_.files, std::greater<>(),
                             [](const HeatMap& map) { return map.written + map.read; });
  }

 private:
  TimelineRow& row_of(const ProcessTrace& process) {
    const auto [row, is_new] = rows_.try_emplace(process.owner, summary_.timeline.size());
    if (is_new)
      summary_.timeline.push_back({process.rank >= 0 ? fmt::format("{}", process.rank)
                                                     : fmt::format("process {}", process.pid),
                                   std::vector<TimelineCell>(TraceSummary::timeline_columns)});
    return summary_.timeline[row->second];
  }

  void add_event(const ProcessTrace& process, const TraceEvent& event) {
    summary_.calls += event.calls;
    summary_.failed += event.failed;
    summary_.io_ns += time_in_calls_ns(event);
    add_sum(process, event);
    const bool of_tasks = call::is_of_lapi(event.call) || call::is_of_dsm(event.call);
    (of_tasks ? summary_.has_tasks : summary_.has_files) = true;
    if (of_tasks) add_traffic(process.rank, event);
    if (!call::is_data(event.call)) return;
    const bool write = call::is_write(event.call);
    (write ? summary_.written : summary_.read) += event.bytes;
    auto& sizes = write ? summary_.sizes.writes : summary_.sizes.reads;
    sizes[size_bin(event.bytes / std::max(event.calls, 1U))] +=
        event.calls;  // of a run: all in one bin
    const auto map = maps_.find(process.file_of(event));
    if (map != maps_.end() && event.bytes > 0)
      add_to_map(map->second, time_of(set_, process, event, HeatMap::columns), event);
  }

  void add_traffic(int rank, const TraceEvent& event) {
    const bool sends = call::sends(event.call);
    const bool fetches = call::fetches(event.call);
    if (sends || fetches) {
      (sends ? summary_.sent : summary_.fetched) += event.bytes;
      auto& sizes = sends ? summary_.transfers.writes : summary_.transfers.reads;
      sizes[size_bin(event.bytes / std::max(event.calls, 1U))] += event.calls;  // likewise
    }
    if (event.task < 0 || (!sends && !fetches && !call::is_wait(event.call))) return;
    TaskTraffic& traffic = summary_.traffic[{rank, event.task}];
    if (sends) traffic.sent += event.bytes;
    if (fetches) traffic.fetched += event.bytes;
    if (call::is_wait(event.call)) traffic.waited_ns += time_in_calls_ns(event);
  }

  void add_sum(const ProcessTrace& process, const TraceEvent& event) {
    const CallSite* const site = process.site_of(event);
    const std::string text = site != nullptr ? site->text : std::string();
    CallSum& sum = sums_[{event.call, process.file_of(event), text}];
    sum.call = event.call;
    sum.file = process.file_of(event);
    sum.site = text;
    sum.calls += event.calls;
    sum.bytes += event.bytes;
    sum.pieces += event.pieces;
    sum.duration_ns += time_in_calls_ns(event);
    sum.wait_ns +=
        call::is_wait(event.call) ? time_in_calls_ns(event) : std::uint64_t{event.wait_us} * 1000;
    if (sum.ranks.empty() || sum.ranks.back() != process.rank) sum.ranks.push_back(process.rank);
  }

  const TraceSet& set_;
  TraceSummary& summary_;
  std::map<std::size_t, std::size_t> rows_;  // by owner
  std::map<std::string, HeatMap> maps_;
  std::map<std::tuple<CallCode, std::string, std::string>, CallSum> sums_;
};

}  // namespace

std::size_t size_bin(std::uint64_t bytes) {
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(bytes)),
                               SizeHistogram::bins - 1);
}

TraceSummary summarize(const TraceSet& set) {
  TraceSummary summary;
  Summing summing(set, summary);
  summing.find_files();
  for (std::size_t i = 0; i < set.processes.size(); ++i) summing.add(i);
  const std::vector<Meeting> meetings = find_meetings(set);
  for (const Meeting& meeting : meetings) summing.add(meeting);
  summing.finish();
  summary.advice = advise(summary.by_site, find_lateness(meetings));
  return summary;
}

}  // namespace shima::tool
