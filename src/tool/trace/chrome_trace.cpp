#include "tool/trace/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tool/trace/call_words.h"
#include "tool/trace/meetings.h"

namespace shima::tool {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Events that may overlap: each gets the first track that is free.
class Tracks {
 public:
  // `first`: the number of the first track.
  Tracks(const char* name, int first) : name_(name), first_(first) {}

  int track_for(std::int64_t begin_ns, std::int64_t end_ns) {
    const auto free = std::ranges::find_if(ends_, [&](auto end) { return end <= begin_ns; });
    const auto track = free - ends_.begin();
    if (free == ends_.end())
      ends_.push_back(end_ns);
    else
      *free = end_ns;
    return static_cast<int>(track) + first_;
  }
  // "background 1" by its number.
  [[nodiscard]] std::map<int, std::string> names() const {
    std::map<int, std::string> names;
    for (int i = 0; i < static_cast<int>(ends_.size()); ++i)
      names[first_ + i] = fmt::format("{} {}", name_, i + 1);
    return names;
  }

 private:
  const char* name_;
  int first_;
  std::vector<std::int64_t> ends_;
};

struct Writer {
  std::ostream& to;
  bool is_first = true;

  void put(const std::string& event) {
    to << (is_first ? "\n" : ",\n") << event;
    is_first = false;
  }
  void name(const char* what, int process, int track, const std::string& text) {
    put(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what,
                    process, track, quoted(text)));
  }
};

struct Job {
  const TraceSet& set;
  LastIn last_in;
};

std::string arguments_of(const Job& job, const ProcessTrace& process, const TraceEvent& event) {
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", name, value);
  };
  const auto add_number = [&](const char* name, auto value) {
    add(name, fmt::format("{}", value));
  };
  if (event.file != 0) add("file", quoted(process.file_of(event)));
  if (call::is_data(event.call)) {
    add_number("offset", event.offset);
    add_number("end", event.end);
    add_number("bytes", event.bytes);
    add_number("pieces", event.pieces);
    add_number("wait_us", event.wait_us);
    add_number("disk_us", event.disk_us);
    add_number("exchange_us", event.exchange_us);
  }
  if (call::is_memory(event.call)) {
    if ((event.call & call::dsm_data) != 0) {
      add_number("offset", event.offset);
      add_number("end", event.end);
    }
    add_number("bytes", event.bytes);
    if (event.pieces != event.calls) add_number("pieces", event.pieces);
  }
  if (event.task >= 0) add_number("task", event.task);
  if (event.calls > 1) {
    add_number("calls", event.calls);
    add("in_calls_us", fmt::format("{:.3f}", static_cast<double>(time_in_calls_ns(event)) / 1000));
  }
  if (const auto strategy = strategy_word(event.strategy); !strategy.empty())
    add("strategy", quoted(std::string(strategy)));
  if (const auto reason = reason_word(event.reason); !reason.empty())
    add("reason", quoted(std::string(reason)));
  if (const auto last = job.last_in.find(&event); last != job.last_in.end())
    add_number("last_in", last->second);
  if (event.failed != 0) add("failed", "true");
  if (const CallSite* const site = process.site_of(event)) add("at", quoted(site->text));
  return text;
}

void write_event(Writer& writer, const Job& job, const ProcessTrace& process,
                 const TraceEvent& event, std::pair<int, int> place) {
  const double begin_us = static_cast<double>(process.begin_of(event) - job.set.begin_ns) / 1000;
  writer.put(fmt::format(
      R"({{"ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
      call_name(event.call), category_of(event.call), place.first, place.second, begin_us,
      static_cast<double>(event.duration_ns) / 1000, arguments_of(job, process, event)));
}

void name_process(Writer& writer, const ProcessTrace& process, int number, std::size_t index) {
  const std::string rank = process.rank >= 0 ? fmt::format("rank {}", process.rank) : "process";
  writer.name(
      "process_name", number, 0,
      fmt::format("{} ({}, process {} on {})", rank, process.program, process.pid, process.host));
  writer.put(fmt::format(
      R"({{"ph":"M","name":"process_sort_index","pid":{},"tid":0,"args":{{"sort_index":{}}}}})",
      number, index));
  writer.name("thread_name", number, 0, "calls");
}

struct Placed {
  const ProcessTrace* process;
  const TraceEvent* event;
};

// The events of all traces of a process.
void write_process(Writer& writer, const Job& job, std::size_t owner) {
  constexpr int first_of_runs = 1000;
  const int number = job.set.number_of(owner);
  name_process(writer, job.set.processes[owner], number, owner);
  std::vector<Placed> overlapping;
  for (const ProcessTrace& process : job.set.processes) {
    if (process.owner != owner) continue;
    process.for_each([&](const TraceEvent& event) {
      if (event.background != 0 || event.calls > 1)
        overlapping.push_back({&process, &event});
      else
        write_event(writer, job, process, event, {number, 0});
    });
  }
  std::ranges::stable_sort(overlapping, {}, [](const Placed& it) { return it.event->begin_ns; });
  Tracks background("background", 1), runs("short calls", first_of_runs);
  for (const auto& [process, event] : overlapping) {
    Tracks& tracks = event->calls > 1 ? runs : background;
    write_event(writer, job, *process, *event,
                {number, tracks.track_for(process->begin_of(*event), process->end_of(*event))});
  }
  for (const Tracks* const tracks : {&background, &runs})
    for (const auto& [track, name] : tracks->names())
      writer.name("thread_name", number, track, name);
}

}  // namespace

void write_chrome_trace(const TraceSet& set, std::ostream& to) {
  to << R"({"displayTimeUnit":"ms","traceEvents":[)";
  Writer writer{to};
  const Job job{set, find_last_in(find_meetings(set))};
  for (std::size_t i = 0; i < set.processes.size(); ++i)
    if (set.processes[i].owner == i) write_process(writer, job, i);
  std::uint64_t dropped_bytes = 0;
  for (const ProcessTrace& process : set.processes) dropped_bytes += process.dropped_bytes;
  nlohmann::ordered_json other{{"shima", SHIMA_VERSION},
                               {"processes", set.process_count()},
                               {"missing_ranks", set.missing()},
                               {"dropped_calls", set.dropped()},
                               {"dropped_bytes", dropped_bytes}};
  to << "\n],\"otherData\":" << other.dump() << "}\n";
}

}  // namespace shima::tool
