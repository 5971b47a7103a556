#include "tool/trace/trace_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "observe/trace_log.h"
#include "tool/top/sample.h"
#include "tool/trace/call_sites.h"
#include "tool/trace/chrome_trace.h"
#include "tool/trace/trace_page.h"

namespace shima::tool {
namespace fs = std::filesystem;
namespace {

template <class Write>
Outcome<void> write_file(const std::string& name, Write write) {
  std::ofstream file(name);
  write(file);
  file.close();
  if (file.good()) return {};
  return refuse(name, "cannot be written", "choose a file with space in a directory of yours");
}

void say_losses(const TraceSet& set) {
  for (const std::string& one : set.unreadable) fmt::print(stderr, "shima: {}\n", one);
  if (const auto missing = set.missing(); !missing.empty())
    fmt::print(stderr,
               "shima: trace: {} of the job wrote none; choose a file that all hosts can write "
               "to\n",
               rank_list(missing));
  if (set.dropped() > 0)
    fmt::print(stderr,
               "shima: trace: {} calls were dropped, because the space for events was full; set "
               "SHIMA_TRACE_LIMIT to more than 16M\n",
               set.dropped());
}

}  // namespace

Outcome<int> merge_traces(const TraceOptions& options) {
  auto set = read_traces(options.directory);
  if (!set) return std::unexpected(set.error());
  if (set->processes.empty())
    return refuse(options.directory, "no process has written a trace",
                  "trace a program that uses MPI-IO, pff.h, lapi.h or dsm.h under Shima");
  name_call_sites(*set);
  say_losses(*set);
  if (!options.trace.empty()) {
    const auto written =
        write_file(options.trace, [&](std::ostream& to) { write_chrome_trace(*set, to); });
    if (!written) return std::unexpected(written.error());
  }
  if (options.html.empty()) return 0;
  const std::string page = trace_page(*set, summarize(*set));
  const auto written = write_file(options.html, [&](std::ostream& to) { to << page; });
  if (!written) return std::unexpected(written.error());
  return 0;
}

Outcome<TraceDirectory> TraceDirectory::make(const TraceOptions& options) {
  std::error_code error;
  const fs::path file = options.trace.empty() ? options.html : options.trace;
  const fs::path beside = fs::absolute(file, error).parent_path();
  std::string name = (beside / ".shima-trace-XXXXXX").string();
  if (error || ::mkdtemp(name.data()) == nullptr)
    return refuse(file.string(),
                  fmt::format("no directory can be made beside it ({})", std::strerror(errno)),
                  "choose a file in a directory that you can write to");
  TraceDirectory made;
  made.path_ = name;
  ::setenv(trace_variable, name.c_str(), 1);
  return made;
}

TraceDirectory::~TraceDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace shima::tool
