#include "tool/dse/dse_command.h"

#include <fmt/format.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "dse/plan/words.h"
#include "dse/topology_file.h"
#include "lapi/way/job_memory.h"
#include "tool/common/print_failure.h"
#include "tool/dse/dse_job.h"
#include "tool/dse/job_hosts.h"

namespace shima::tool {
namespace {

constexpr std::size_t most_graph_bytes = std::size_t{100} << 10;  // it travels in a variable

Outcome<dse::Topology> topology_of(const DseOptions& options) {
  const std::string& text = options.topology;
  const int tasks = options.tasks;
  if (text.empty()) return *dse::Topology::parse("ring", std::max(tasks, 1));
  auto topology = dse::read_topology(text, tasks);
  if (!topology) return std::unexpected(failure_of("--topology", topology.error()));
  if (topology->tasks() > lapi::most_tasks)
    return refuse("--topology " + text, fmt::format("it has {} tasks", topology->tasks()),
                  fmt::format("a job has at most {}", lapi::most_tasks));
  if (topology->text().size() > most_graph_bytes)
    return refuse("--topology " + text, "the graph is too long",
                  fmt::format("at most {} bytes of text can be passed on", most_graph_bytes));
  return *std::move(topology);
}

Outcome<void> check_input(const DseOptions& options, int tasks) {
  const auto task = dse::parse_number(options.input);
  if (options.input == "all" || options.input == "none" || (task && *task >= 0 && *task < tasks))
    return {};
  return refuse("--stdin " + options.input, fmt::format("the job has the tasks 0 to {}", tasks - 1),
                "name one of them, all or none");
}

}  // namespace

Outcome<int> run_dse(const DseOptions& options) {
  auto topology = topology_of(options);
  if (!topology) return std::unexpected(topology.error());
  if (auto checked = check_input(options, topology->tasks()); !checked)
    return std::unexpected(checked.error());
  auto hosts = find_hosts(options);
  if (!hosts) return std::unexpected(hosts.error());
  const sigset_t watched = DseJob::watched_signals();
  std::signal(SIGCHLD, SIG_DFL);  // an inherited SIG_IGN would hide the end of launchers
  sigprocmask(SIG_BLOCK, &watched, nullptr);
  const UniqueFd signals(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals)
    return refuse("shima dse run", fmt::format("no signalfd ({})", std::strerror(errno)),
                  "raise the limit of open files (ulimit -n)");
  DseJob job(options, *std::move(hosts), *std::move(topology), signals.get());
  return job.run();
}

}  // namespace shima::tool
