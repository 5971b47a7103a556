// Traces made in memory, for tests of what is made of them.
#pragma once

#include <vector>

#include "observe/trace_log.h"
#include "tool/trace/trace_set.h"

namespace shima::test {

constexpr std::int64_t ms = 1'000'000;

// Traces of processes, made in memory.
class Made {
 public:
  explicit Made(std::size_t processes) : events_(processes) {}
  TraceEvent& add(std::size_t process, CallCode code, std::int64_t begin_ms, std::int64_t len_ms) {
    TraceEvent event = plain_event(1);
    event.call = code;
    event.begin_ns = static_cast<std::uint64_t>(begin_ms * ms);
    event.duration_ns = static_cast<std::uint64_t>(len_ms * ms);
    event.is_set = 1;
    events_[process].push_back(event);
    return events_[process].back();
  }
  TraceEvent& add_data(std::size_t process, CallCode code, std::int64_t begin_ms,
                       std::int64_t offset, std::uint64_t bytes) {
    TraceEvent& event = add(process, code, begin_ms, 1);
    event.offset = offset;
    event.end = offset + static_cast<std::int64_t>(bytes);
    event.bytes = bytes;
    event.site = 1;
    return event;
  }
  tool::TraceSet set() {
    tool::TraceSet made;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      tool::ProcessTrace process{
          .host = "h", .program = "p", .boot = "b", .pid = 10 + static_cast<int>(i)};
      process.rank = static_cast<int>(i);
      process.tasks = static_cast<int>(events_.size());
      process.files = {"/data <1>"};
      process.sites = {{"/bin/p", 16, 16, "p.c:7 in main"}};
      process.events = events_[i];
      made.processes.push_back(std::move(process));
    }
    tool::align(made);
    return made;
  }

 private:
  std::vector<std::vector<TraceEvent>> events_;
};

}  // namespace shima::test
