#include "tool/trace/chrome_trace.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tool/trace/call_words.h"
#include "tool/trace/chrome_text.h"
#include "tool/trace/meetings.h"

namespace shima::tool {
namespace {

// An event of a process.
struct Placed {
  const ProcessTrace* process;
  const TraceEvent* event;
};

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

// What many events of a process have in common, as text.
class Words {
 public:
  explicit Words(const ProcessTrace& process) {
    for (const std::string& file : process.files) files_.push_back(quoted(file));
    for (const CallSite& site : process.sites) sites_.push_back(quoted(site.text));
  }
  [[nodiscard]] const std::string& file_of(const TraceEvent& event) const {
    static const std::string none = quoted({});
    return event.file - 1U < files_.size() ? files_[event.file - 1U] : none;
  }
  // Null if it is not known.
  [[nodiscard]] const std::string* site_of(const TraceEvent& event) const {
    return event.site - 1U < sites_.size() ? &sites_[event.site - 1U] : nullptr;
  }
  [[nodiscard]] const std::string& call_of(const TraceEvent& event) {
    std::string& words = calls_[event.call];
    if (words.empty())
      words =
          fmt::format(R"("name":"{}","cat":"{}")", call_name(event.call), category_of(event.call));
    return words;
  }

 private:
  std::vector<std::string> files_;
  std::vector<std::string> sites_;
  std::unordered_map<CallCode, std::string> calls_;
};

struct Job {
  const TraceSet& set;
  LastIn last_in;
};

void add_arguments(Members members, const Job& job, const Words& words, const TraceEvent& event) {
  if (event.file != 0) members.add("file", words.file_of(event));
  if (call::is_data(event.call)) {
    members.add("offset", event.offset);
    members.add("end", event.end);
    members.add("bytes", event.bytes);
    members.add("pieces", event.pieces);
    members.add("wait_us", event.wait_us);
    members.add("disk_us", event.disk_us);
    members.add("exchange_us", event.exchange_us);
  }
  if (call::is_memory(event.call)) {
    if ((event.call & call::dsm_data) != 0) {
      members.add("offset", event.offset);
      members.add("end", event.end);
    }
    members.add("bytes", event.bytes);
    if (event.pieces != event.calls) members.add("pieces", event.pieces);
  }
  if (event.task >= 0) members.add("task", event.task);
  if (event.calls > 1) {
    members.add("calls", event.calls);
    members.add("in_calls_us", us_of(static_cast<std::int64_t>(time_in_calls_ns(event))));
  }
  members.add_word("strategy", strategy_word(event.strategy));
  members.add_word("reason", reason_word(event.reason));
  if (const auto last = job.last_in.find(&event); last != job.last_in.end())
    members.add("last_in", last->second);
  if (event.failed != 0) members.add("failed", "true");
  if (const std::string* const site = words.site_of(event)) members.add("at", *site);
}

// Where an event is shown.
struct Track {
  int process = 0;
  int number = 0;
};

void write_event(EventWriter& writer, const Job& job, Words& words, const Placed& placed,
                 const Track& track) {
  const TraceEvent& event = *placed.event;
  fmt::format_to(writer.begin_event(),
                 FMT_COMPILE(R"({{"ph":"X",{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{)"),
                 words.call_of(event), track.process, track.number,
                 us_of(placed.process->begin_of(event) - job.set.begin_ns),
                 us_of(static_cast<std::int64_t>(event.duration_ns)));
  add_arguments(Members(writer.text()), job, words, event);
  writer.text().append(std::string_view("}}"));
}

void name_process(EventWriter& writer, const ProcessTrace& process, int number, std::size_t index) {
  const std::string rank = process.rank >= 0 ? fmt::format("rank {}", process.rank) : "process";
  writer.name(
      "process_name", number, 0,
      fmt::format("{} ({}, process {} on {})", rank, process.program, process.pid, process.host));
  fmt::format_to(
      writer.begin_event(),
      R"({{"ph":"M","name":"process_sort_index","pid":{},"tid":0,"args":{{"sort_index":{}}}}})",
      number, index);
  writer.name("thread_name", number, 0, "calls");
}

// The events of all traces of a process.
void write_process(EventWriter& writer, const Job& job, std::size_t owner) {
  constexpr int first_of_runs = 1000;
  const int number = job.set.number_of(owner);
  name_process(writer, job.set.processes[owner], number, owner);
  std::vector<Placed> overlapping;
  std::unordered_map<const ProcessTrace*, Words> words;
  for (const ProcessTrace& process : job.set.processes) {
    if (process.owner != owner) continue;
    Words& own = words.emplace(&process, process).first->second;
    process.for_each([&](const TraceEvent& event) {
      if (event.background != 0 || event.calls > 1)
        overlapping.push_back({&process, &event});
      else
        write_event(writer, job, own, {&process, &event}, {number, 0});
    });
  }
  std::ranges::stable_sort(overlapping, {}, [](const Placed& it) { return it.event->begin_ns; });
  Tracks background("background", 1), runs("short calls", first_of_runs);
  for (const Placed& one : overlapping) {
    Tracks& tracks = one.event->calls > 1 ? runs : background;
    write_event(writer, job, words.at(one.process), one,
                {number, tracks.track_for(one.process->begin_of(*one.event),
                                          one.process->end_of(*one.event))});
  }
  for (const Tracks* const tracks : {&background, &runs})
    for (const auto& [track, name] : tracks->names())
      writer.name("thread_name", number, track, name);
}

}  // namespace

void write_chrome_trace(const TraceSet& set, std::ostream& to) {
  to << R"({"displayTimeUnit":"ms","traceEvents":[)";
  {
    EventWriter writer(to);
    const Job job{set, find_last_in(find_meetings(set))};
    for (std::size_t i = 0; i < set.processes.size(); ++i)
      if (set.processes[i].owner == i) write_process(writer, job, i);
  }
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
