#include "simulate/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "simulate/limits.h"

namespace shima::simulate {
namespace {

using nlohmann::ordered_json;

ordered_json json_of(const Cost& cost) {
  return {{"cpu_ns", cost.cpu_ns},
          {"allocations", cost.allocations},
          {"allocated_bytes", cost.allocated_bytes},
          {"kept_bytes", cost.kept_bytes}};
}

ordered_json json_of(const MemberCost& member) {
  return {{"rank", member.rank}, {"cost", json_of(member.cost)}};
}

ordered_json json_of(const LeaderCost& leader) {
  return {{"rank", leader.rank},
          {"messages", leader.messages},
          {"message_bytes", leader.message_bytes},
          {"cost", json_of(leader.cost)}};
}

ordered_json json_of(const MasterCounts& master) {
  return {{"rank", master.rank},
          {"agents", master.agents},
          {"agents_touched", master.agents_touched},
          {"requests", master.requests},
          {"messages", master.messages},
          {"bytes", master.bytes},
          {"cost", json_of(master.cost)}};
}

ordered_json json_of(const AgentCounts& agent) {
  return {{"agent", agent.agent},         {"rank", agent.rank},
          {"subgroups", agent.subgroups}, {"windows", agent.windows},
          {"messages", agent.messages},   {"most_messages_in_a_window", agent.most_in_a_window},
          {"visits", agent.visits},       {"near_bytes", agent.near_bytes},
          {"far_bytes", agent.far_bytes}};
}

ordered_json json_of(const Estimate& made) {
  return {{"seconds", made.seconds},
          {"meetings_s", made.meetings_s},
          {"processors_s", made.processors_s},
          {"wire_s", made.wire_s},
          {"disk_s", made.disk_s},
          {"messages_s", made.messages_s}};
}

ordered_json json_of(const Limit& limit) {
  return {{"name", limit.name},
          {"rule", limit.rule},
          {"value", limit.value},
          {"limit", limit.limit},
          {"reached", limit.reached()}};
}

ordered_json json_of(const Traffic& traffic) {
  return {{"independent", traffic.independent},
          {"is_read", traffic.is_read},
          {"cached", traffic.cached},
          {"listed", traffic.listed},
          {"pulled", traffic.pulled},
          {"ranks", traffic.ranks},
          {"members", traffic.members},
          {"nodes", traffic.nodes},
          {"cores_per_node", traffic.cores_per_node},
          {"agents", traffic.agents},
          {"subfiles", traffic.subfiles},
          {"bytes", traffic.bytes},
          {"pieces", traffic.pieces},
          {"span_bytes", traffic.span_bytes},
          {"far_share", traffic.far_share},
          {"messages", traffic.messages},
          {"windows", traffic.windows},
          {"visits", traffic.visits},
          {"window_bytes", traffic.window_bytes}};
}

ordered_json json_of(const Scale& scale);

template <class T>
ordered_json list_of(const std::vector<T>& values) {
  ordered_json list = ordered_json::array();
  for (const T& value : values) list.push_back(json_of(value));
  return list;
}

ordered_json json_of(const Scale& scale) {
  return {{"ranks", scale.ranks},
          {"nodes", scale.nodes},
          {"strategy", name_of(scale.choice.strategy)},
          {"reason", reason_rows()[static_cast<std::size_t>(scale.choice.reason)].name},
          {"path", way_of(scale)},
          {"agents", scale.agents},
          {"window_bytes", scale.window_bytes},
          {"file_bytes", scale.digest.len_bytes},
          {"file_pieces", scale.digest.file_pieces},
          {"post_bytes", scale.post_bytes},
          {"topology_bytes", scale.topology_bytes},
          {"traffic", json_of(scale.traffic)},
          {"estimate", json_of(scale.estimate)},
          {"member_median_ns", median_ns(scale.members)},
          {"members", list_of(scale.members)},
          {"leaders", list_of(scale.leaders)},
          {"masters", list_of(scale.masters)},
          {"sampled_agents", list_of(scale.agent_counts)}};
}

ordered_json json_of(const Workload& workload) {
  return {{"pattern", name_of(workload.shape)},
          {"direction", workload.direction == Direction::write ? "write" : "read"},
          {"ranks_per_node", workload.ranks_per_node},
          {"cores_per_node", workload.cores_per_node},
          {"placement", workload.round_robin ? "round_robin" : "blocks"},
          {"bytes_per_rank", workload.bytes_per_rank},
          {"piece_bytes", workload.piece_bytes},
          {"targets", workload.subfiles},
          {"unit_bytes", workload.unit_bytes}};
}

ordered_json json_of(const PiecesProbe& probe) {
  return {{"few", probe.few},
          {"many", probe.many},
          {"cost_few", json_of(probe.cost_few)},
          {"cost_many", json_of(probe.cost_many)},
          {"post_bytes_few", probe.post_bytes_few},
          {"post_bytes_many", probe.post_bytes_many}};
}

}  // namespace

std::string_view name_of(Strategy strategy) {
  constexpr std::array<std::string_view, strategy_count> names{
      "disk_directed", "two_phase", "subgroup", "independent", "io_node"};
  return names[static_cast<std::size_t>(strategy)];
}

std::string_view way_of(const Scale& scale) {
  if (scale.choice.strategy == Strategy::independent) return "own I/O";
  switch (scale.path) {
    case Path::single_copy:
      return "single_copy";
    case Path::pull:
      return "pull";
    case Path::pack:
      return "pack";
    default:
      return "message";
  }
}

Result<Report> simulate(const Request& request, const Meter& meter, const ScaleNotice& notice) {
  Report report{.request = request, .scales = {}, .pieces = {}, .limits = {}};
  for (const int ranks : request.ranks) {
    Workload workload = request.workload;
    workload.ranks = ranks;
    SHIMA_TRY_ASSIGN(auto scale, measure_scale(workload, request.machine, request.sampling, meter,
                                               [&](std::string_view doing, int done, int all) {
                                                 if (notice)
                                                   notice(fmt::format("{} ranks: {}", ranks, doing),
                                                          done, all);
                                               }));
    report.scales.push_back(std::move(scale));
  }
  report.pieces = probe_pieces(request, meter);
  report.limits = limits_of(report);
  return report;
}

std::string as_json(const Report& report) {
  ordered_json machine;
  for (const MachineField& field : machine_fields)
    machine[std::string(field.name)] = report.request.machine.*field.value;
  const ordered_json all{{"shima", SHIMA_VERSION},
                         {"workload", json_of(report.request.workload)},
                         {"machine", machine},
                         {"samples", report.request.sampling.count},
                         {"seed", report.request.sampling.seed},
                         {"scales", list_of(report.scales)},
                         {"pieces", json_of(report.pieces)},
                         {"limits", list_of(report.limits)}};
  return all.dump(1) + "\n";
}

std::string as_text(const Report& report) {
  std::string text = fmt::format("{:>9} {:>6} {:>8} {:<13} {:>10} {:>7} {:>9} {:>9} {:>9} {:>10}\n",
                                 "ranks", "nodes", "agents", "strategy", "member ns", "allocs",
                                 "leader ns", "requests", "messages", "topology B");
  for (const Scale& scale : report.scales) {
    const Figures at = figures_of(scale);
    text += fmt::format(
        "{:>9} {:>6} {:>8} {:<13} {:>10.0f} {:>7.0f} {:>9.0f} {:>9.0f} {:>9.0f} {:>10.0f}\n",
        scale.ranks, scale.nodes, scale.agents, name_of(scale.choice.strategy), at.member_ns,
        at.member_allocations, at.leader_ns, at.requests, at.agent_messages, at.topology_bytes);
  }
  for (const Limit& limit : report.limits)
    text += fmt::format("{:<7} {}: {:.2f}, at most {:.2f} ({})\n",
                        limit.reached() ? "reached" : "MISSED", limit.name, limit.value,
                        limit.limit, limit.rule);
  return text;
}

}  // namespace shima::simulate
