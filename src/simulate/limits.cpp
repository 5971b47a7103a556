#include "simulate/limits.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "collective/plan/post_message.h"

namespace shima::simulate {
namespace {

// How much a figure may grow.
constexpr double flat = 1.5;
constexpr double doubled = 2;
constexpr std::uint64_t more_pieces = 64;  // times as many as in the request
constexpr std::uint64_t few_pieces = 16;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

// The master whose requests exceed what it needs the most.
void add_masters(const Scale& scale, Figures& figures) {
  double worst = -1;
  for (const MasterCounts& master : scale.masters) {
    const auto requests = static_cast<double>(master.requests);
    const auto needed = static_cast<double>(master.agents_touched);
    const double excess = requests / std::max(needed, 1.0);
    if (excess < worst || (excess == worst && requests < figures.requests)) continue;
    worst = excess;
    figures.requests = requests;
    figures.requests_needed = needed;
    figures.master_ns = master.cost.cpu_ns;
    figures.master_bytes = static_cast<double>(master.cost.kept_bytes);
    figures.master_bytes_a_request = figures.master_bytes / std::max(requests, 1.0);
  }
}

void add_agents(const Scale& scale, Figures& figures) {
  for (const AgentCounts& agent : scale.agent_counts) {
    const auto subgroups = static_cast<double>(agent.subgroups);
    const auto in_a_window = static_cast<double>(agent.most_in_a_window);
    figures.in_a_window = std::max(figures.in_a_window, in_a_window);
    figures.window_excess = std::max(figures.window_excess, in_a_window - subgroups);
    if (static_cast<double>(agent.messages) < figures.agent_messages) continue;
    figures.agent_messages = static_cast<double>(agent.messages);
    figures.agent_subgroups = subgroups;
  }
}

// By how much a figure grows from one scale to a larger one; 1 if it does not.
double growth(const Report& report, double Figures::* figure, double least = 1) {
  double smallest = 0;
  double most = 1;
  for (const Scale& scale : report.scales) {
    const double value = std::max(figures_of(scale).*figure, least);
    smallest = smallest == 0 ? value : std::min(smallest, value);
    most = std::max(most, value / smallest);
  }
  return most;
}

// The largest of a ratio over all scales.
double largest(const Report& report,
               const std::function<double(const Scale&, const Figures&)>& of) {
  double most = 0;
  for (const Scale& scale : report.scales) most = std::max(most, of(scale, figures_of(scale)));
  return most;
}

double rounds_allowed(int nodes) { return nodes == 1 ? 0 : std::ceil(std::log2(nodes)) + 1; }

// By how much more a leader's time grows than its rounds, which each join one more digest.
double leader_growth(const Report& report) {
  const int near = std::min(report.request.workload.ranks_per_node, report.scales.front().ranks);
  const auto joins = [near](int nodes) { return near + rounds_allowed(nodes); };
  const Scale& first = report.scales.front();
  return largest(report, [&](const Scale& scale, const Figures& figures) {
    return figures.leader_ns / joins(scale.nodes) /
           (std::max(figures_of(first).leader_ns, 1.0) / joins(first.nodes));
  });
}

double ratio(std::uint64_t many, std::uint64_t few) {
  return static_cast<double>(many) / static_cast<double>(std::max<std::uint64_t>(few, 1));
}

void add_pieces(const Report& report, std::vector<Limit>& limits) {
  const PiecesProbe& probe = report.pieces;
  if (probe.many == 0) return;
  limits.push_back({"pieces, time", "a member's time with 64 times the pieces",
                    probe.cost_many.cpu_ns / std::max(probe.cost_few.cpu_ns, 1.0), flat});
  limits.push_back({"pieces, allocations", "a member's allocations with 64 times the pieces",
                    ratio(probe.cost_many.allocations, probe.cost_few.allocations), 1});
  limits.push_back({"pieces, post", "the bytes of a post with 64 times the pieces",
                    ratio(probe.post_bytes_many, probe.post_bytes_few), 1.1});
}

}  // namespace

Figures figures_of(const Scale& scale) {
  Figures figures;
  figures.member_ns = median_ns(scale.members);
  for (const MemberCost& member : scale.members) {
    const double ns = member.cost.cpu_ns;
    figures.member_least_ns =
        figures.member_least_ns == 0 ? ns : std::min(figures.member_least_ns, ns);
    figures.member_allocations =
        std::max(figures.member_allocations, static_cast<double>(member.cost.allocations));
    figures.member_bytes =
        std::max(figures.member_bytes, static_cast<double>(member.cost.allocated_bytes));
  }
  std::vector<double> leaders;
  for (const LeaderCost& leader : scale.leaders) {
    leaders.push_back(leader.cost.cpu_ns);
    figures.leader_bytes =
        std::max(figures.leader_bytes, static_cast<double>(leader.cost.allocated_bytes));
    figures.leader_messages =
        std::max(figures.leader_messages, static_cast<double>(leader.messages));
  }
  figures.leader_ns = median(std::move(leaders));
  add_masters(scale, figures);
  add_agents(scale, figures);
  figures.topology_bytes = static_cast<double>(scale.topology_bytes);
  return figures;
}

// Lists have no fewer bytes than pieces; all other shapes are regular.
PiecesProbe probe_pieces(const Request& request, const Meter& meter) {
  PiecesProbe probe;
  Workload workload = request.workload;
  workload.ranks = request.ranks.front();
  if (workload.shape == Shape::irregular || workload.shape == Shape::blocks) return probe;
  const auto cost_with = [&](std::uint64_t pieces, std::uint64_t& post_bytes) {
    workload.bytes_per_rank = workload.piece_bytes * pieces;
    const Access access = access_of(workload, workload.ranks - 1);
    post_bytes = bytes_of_post(make_post(access.file, access.memory));
    volatile std::size_t sink = 0;
    return meter.measure(9, 100, [&] {
      PostWriter writer;
      const Post post = make_post(access.file, access.memory);
      sink = writer.message_of(post).size() + digest_of(post).member_count;
    });
  };
  probe.few = few_pieces;
  probe.many = few_pieces * more_pieces;
  probe.cost_few = cost_with(probe.few, probe.post_bytes_few);
  probe.cost_many = cost_with(probe.many, probe.post_bytes_many);
  return probe;
}

std::vector<Limit> limits_of(const Report& report) {
  std::vector<Limit> limits;
  limits.push_back({"member, time", "planning of a rank that is no leader, quickest sample: growth",
                    growth(report, &Figures::member_least_ns), flat});
  limits.push_back({"member, allocations", "the same in bytes allocated",
                    growth(report, &Figures::member_bytes), flat});
  limits.push_back({"leader, time", "growth beyond one join a round", leader_growth(report), flat});
  limits.push_back({"leader, memory", "bytes allocated: growth",
                    growth(report, &Figures::leader_bytes, 4096), flat});
  limits.push_back({"leader, messages", "messages over two rounds of log2(nodes) + 1",
                    largest(report,
                            [](const Scale& scale, const Figures& figures) {
                              const double allowed = 2 * rounds_allowed(scale.nodes);
                              return allowed == 0 ? 0 : figures.leader_messages / allowed;
                            }),
                    1});
  limits.push_back({"topology, bytes", "what a rank keeps: growth",
                    growth(report, &Figures::topology_bytes, 4096), flat});
  limits.push_back({"master, requests", "requests over agents with bytes of its subgroup",
                    largest(report,
                            [](const Scale& scale, const Figures& figures) {
                              if (scale.nodes <= 8) return 0.0;
                              return figures.requests / std::max(figures.requests_needed, 1.0);
                            }),
                    flat});
  limits.push_back({"master, memory", "bytes kept for each request: growth",
                    growth(report, &Figures::master_bytes_a_request, 4096), doubled});
  limits.push_back(
      {"agent, messages a window", "beyond one of each subgroup that touches it",
       largest(report, [](const Scale&, const Figures& figures) { return figures.window_excess; }),
       0});
  add_pieces(report, limits);
  return limits;
}

}  // namespace shima::simulate
