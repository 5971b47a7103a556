#include "collective/plan/agent_map.h"

#include <algorithm>

#include "layout/layout.h"

namespace shima {
namespace {

std::uint64_t domain_alignment(const TargetRange& part, int agents, std::uint64_t window_bytes) {
  return part.len_bytes() >= 4 * static_cast<std::uint64_t>(agents) * window_bytes ? window_bytes
                                                                                   : grid_bytes;
}

// count * numerator / denominator, as if the numbers had no limit.
int scaled(int count, int numerator, int denominator) {
  return static_cast<int>(static_cast<std::int64_t>(count) * numerator / denominator);
}

int scaled_up(int count, int numerator, int denominator) {
  return static_cast<int>((static_cast<std::int64_t>(count) * numerator + denominator - 1) /
                          denominator);
}

}  // namespace

AgentMap::AgentMap(const Topology& topology, std::vector<Domain> parts, const AgentLimits& limits)
    : topology_(&topology),
      parts_(std::move(parts)),
      window_bytes_(limits.window_bytes),
      one_a_node_(limits.one_a_node),
      candidates_(first_candidate_of(topology.node_count())),
      count_(limits.max_agents > 0 ? std::min(limits.max_agents, candidates_) : candidates_) {
  if (parts_.empty()) count_ = 0;
}

int AgentMap::first_candidate_of(int node) const {
  return one_a_node_ ? node : topology_->candidates_before(node);
}

int AgentMap::candidate_of(int agent) const { return scaled(agent, candidates_, count_); }

int AgentMap::agent_from(int candidate) const { return scaled_up(candidate, count_, candidates_); }

int AgentMap::rank_of(int agent) const {
  const int candidate = candidate_of(agent);
  const int node = one_a_node_ ? candidate : topology_->node_of_candidate(candidate);
  const int turn = candidate - first_candidate_of(node);
  const int candidates = first_candidate_of(node + 1) - first_candidate_of(node);
  const auto ranks = topology_->ranks_on(node);
  return ranks[static_cast<std::size_t>(scaled(turn, static_cast<int>(ranks.size()), candidates))];
}

std::optional<int> AgentMap::agent_at(int rank) const {
  if (count_ == 0) return std::nullopt;
  const int node = topology_->node_of(rank);
  const int candidates = first_candidate_of(node + 1) - first_candidate_of(node);
  const int turn = scaled_up(topology_->index_of(rank), candidates,
                             static_cast<int>(topology_->ranks_on(node).size()));
  if (turn == candidates) return std::nullopt;
  const int agent = agent_from(first_candidate_of(node) + turn);
  const bool is_it = agent < count_ && rank_of(agent) == rank;
  return is_it ? std::optional(agent) : std::nullopt;
}

AgentRange AgentMap::agents_on(int node) const {
  if (count_ == 0) return {};
  return {agent_from(first_candidate_of(node)), agent_from(first_candidate_of(node + 1))};
}

int AgentMap::agents_of_part(std::size_t part) const {
  const int parts = static_cast<int>(parts_.size());
  return count_ / parts + (static_cast<int>(part) < count_ % parts ? 1 : 0);
}

int AgentMap::first_agent_of_part(std::size_t part) const {
  const int parts = static_cast<int>(parts_.size());
  const int before = static_cast<int>(part);
  return before * (count_ / parts) + std::min(before, count_ % parts);
}

TargetRange AgentMap::cut(std::size_t part, int turn) const {
  const TargetRange& range = parts_[part].range;
  const int agents = agents_of_part(part);
  return cut_range(range, agents, domain_alignment(range, agents, window_bytes_), turn);
}

std::vector<Domain> AgentMap::domains_of(int agent) const {
  std::vector<Domain> domains;
  const auto parts = static_cast<std::size_t>(parts_.size());
  if (parts >= static_cast<std::size_t>(count_)) {
    for (auto part = static_cast<std::size_t>(agent); part < parts;
         part += static_cast<std::size_t>(count_))
      domains.push_back(parts_[part]);
    return domains;
  }
  // The parts that have one more agent come first.
  std::size_t part = parts - 1;
  while (first_agent_of_part(part) > agent) --part;
  const TargetRange range = cut(part, agent - first_agent_of_part(part));
  if (!range.empty()) domains.push_back({parts_[part].subfile, range});
  return domains;
}

}  // namespace shima
