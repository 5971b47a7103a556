// What `--show` and `--verbose` say about where the tasks run.
#include <fmt/format.h>

#include <algorithm>

#include "tool/dse/dse_job.h"

namespace shima::tool {
namespace {

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string short_text(const dse::Topology& topology) {
  return topology.kind() == dse::Topology::Kind::graph ? "graph" : topology.text();
}

}  // namespace

std::string DseJob::hosts_with_tasks() const {
  std::string names;
  for (int host = 0; host < static_cast<int>(hosts_.size()); ++host)
    if (std::ranges::count(tasks_, host, &TaskState::host) > 0)
      names += (names.empty() ? "" : ",") + hosts_[static_cast<std::size_t>(host)].host.name;
  return names;
}

std::string DseJob::plan_text() const {
  std::vector<dse::HostRoom> rooms;
  for (const HostState& one : hosts_) rooms.push_back({0, one.machine});
  const dse::Separation apart = separation_of(topology_, rooms, seats_);
  std::string text =
      fmt::format("topology {}: {}, of which {} on different hosts\n", short_text(topology_),
                  counted(static_cast<std::size_t>(apart.pairs), "pair") + " of neighbors",
                  apart.on_other_hosts);
  for (int host = 0; host < static_cast<int>(hosts_.size()); ++host) {
    const HostState& one = hosts_[static_cast<std::size_t>(host)];
    const auto tasks = std::ranges::count(seats_, host, &dse::Seat::host);
    text += fmt::format("host {}: {} on {}\n", one.host.name,
                        counted(static_cast<std::size_t>(tasks), "task"),
                        counted(one.machine.size(), "core"));
    for (int task = 0; task < topology_.tasks(); ++task) {
      const dse::Seat& seat = seats_[static_cast<std::size_t>(task)];
      if (seat.host != host) continue;
      const dse::Core& core = one.machine[static_cast<std::size_t>(seat.core)];
      text += fmt::format("  task {}: package {}, core {}, cpus {}{};", task, core.place[0],
                          core.place[3], dse::describe_cpus(core.cpus),
                          options_.bind == "core" ? "" : ", not bound");
      for (const dse::Neighbor& neighbor : topology_.neighbors(task))
        text += fmt::format(" {}={}", neighbor.name, neighbor.task);
      text += '\n';
    }
  }
  return text;
}

}  // namespace shima::tool
