#include "tool/trace/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tool/trace/call_words.h"

namespace shima::tool {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Calls in the background may overlap: each gets the first track that is free.
class Tracks {
 public:
  int track_for(std::int64_t begin_ns, std::int64_t end_ns) {
    const auto free = std::ranges::find_if(ends_, [&](auto end) { return end <= begin_ns; });
    const auto track = free - ends_.begin();
    if (free == ends_.end())
      ends_.push_back(end_ns);
    else
      *free = end_ns;
    return static_cast<int>(track) + 1;
  }
  [[nodiscard]] int count() const { return static_cast<int>(ends_.size()); }

 private:
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

std::string arguments_of(const ProcessTrace& process, const TraceEvent& event) {
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
  if (const auto strategy = strategy_word(event.strategy); !strategy.empty())
    add("strategy", quoted(std::string(strategy)));
  if (const auto reason = reason_word(event.reason); !reason.empty())
    add("reason", quoted(std::string(reason)));
  if (event.failed != 0) add("failed", "true");
  if (const CallSite* const site = process.site_of(event)) add("at", quoted(site->text));
  return text;
}

void write_event(Writer& writer, const TraceSet& set, const ProcessTrace& process,
                 const TraceEvent& event, std::pair<int, int> place) {
  const double begin_us = static_cast<double>(process.begin_of(event) - set.begin_ns) / 1000;
  writer.put(fmt::format(
      R"({{"ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
      call_name(event.call), category_of(event.call), place.first, place.second, begin_us,
      static_cast<double>(event.duration_ns) / 1000, arguments_of(process, event)));
}

void write_process(Writer& writer, const TraceSet& set, std::size_t index) {
  const ProcessTrace& process = set.processes[index];
  const int number = set.number_of(index);
  const std::string rank = process.rank >= 0 ? fmt::format("rank {}", process.rank) : "process";
  writer.name(
      "process_name", number, 0,
      fmt::format("{} ({}, process {} on {})", rank, process.program, process.pid, process.host));
  writer.put(fmt::format(
      R"({{"ph":"M","name":"process_sort_index","pid":{},"tid":0,"args":{{"sort_index":{}}}}})",
      number, index));
  writer.name("thread_name", number, 0, "calls");
  std::vector<const TraceEvent*> background;
  process.for_each([&](const TraceEvent& event) {
    if (event.background != 0)
      background.push_back(&event);
    else
      write_event(writer, set, process, event, {number, 0});
  });
  std::ranges::sort(background, {}, &TraceEvent::begin_ns);
  Tracks tracks;
  for (const TraceEvent* const event : background)
    write_event(writer, set, process, *event,
                {number, tracks.track_for(process.begin_of(*event), process.end_of(*event))});
  for (int track = 1; track <= tracks.count(); ++track)
    writer.name("thread_name", number, track, fmt::format("background {}", track));
}

}  // namespace

void write_chrome_trace(const TraceSet& set, std::ostream& to) {
  to << R"({"displayTimeUnit":"ms","traceEvents":[)";
  Writer writer{to};
  for (std::size_t i = 0; i < set.processes.size(); ++i) write_process(writer, set, i);
  std::uint64_t dropped_bytes = 0;
  for (const ProcessTrace& process : set.processes) dropped_bytes += process.dropped_bytes;
  nlohmann::ordered_json other{{"shima", SHIMA_VERSION},
                               {"processes", set.processes.size()},
                               {"missing_ranks", set.missing()},
                               {"dropped_calls", set.dropped()},
                               {"dropped_bytes", dropped_bytes}};
  to << "\n],\"otherData\":" << other.dump() << "}\n";
}

}  // namespace shima::tool
