#include "collective/plan/agent_map.h"

#include <algorithm>

#include "layout/layout.h"

namespace shima {
namespace {

std::uint64_t alignment_of(const TargetRange& range, int agents, std::uint64_t window_bytes) {
  const bool is_large = range.len_bytes() >= 4 * static_cast<std::uint64_t>(agents) * window_bytes;
  return is_large ? window_bytes : grid_bytes;
}

// The part of `range` that the `turn`th of `agents` owns.
TargetRange share_of(const TargetRange& range, int agents, std::uint64_t window_bytes, int turn) {
  return cut_range(range, agents, alignment_of(range, agents, window_bytes), turn);
}

// Which of `agents` owns a byte of `range`.
int owner_in(const TargetRange& range, int agents, std::uint64_t window_bytes, TargetOffset at) {
  return cut_containing(range, agents, alignment_of(range, agents, window_bytes), at);
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
      kind_(limits.candidates),
      candidates_(first_candidate_of(topology.node_count())),
      count_(limits.max_agents > 0 ? std::min(limits.max_agents, candidates_) : candidates_) {
  if (are_io_nodes()) count_ = candidates_ = static_cast<int>(parts_.size());
  if (parts_.empty()) count_ = 0;
}

AgentMap::AgentMap(const Topology& topology, const Layout& layout, FileRange span,
                   const AgentLimits& limits)
    : AgentMap(topology, parts_of(layout, span), limits) {
  layout_ = &layout;
  span_ = span;
}

int AgentMap::first_candidate_of(int node) const {
  switch (kind_) {
    case AgentCandidates::nodes:
      return node;
    case AgentCandidates::members:
      return topology_->members_before(node);
    default:
      return topology_->candidates_before(node);
  }
}

int AgentMap::node_of_candidate(int candidate) const {
  switch (kind_) {
    case AgentCandidates::nodes:
      return candidate;
    case AgentCandidates::members:
      return topology_->node_of_place(candidate);
    default:
      return topology_->node_of_candidate(candidate);
  }
}

int AgentMap::candidate_of(int agent) const { return scaled(agent, candidates_, count_); }

int AgentMap::agent_from(int candidate) const { return scaled_up(candidate, count_, candidates_); }

int AgentMap::rank_of(int agent) const {
  if (are_io_nodes()) return agent;
  const int candidate = candidate_of(agent);
  const int node = node_of_candidate(candidate);
  const int turn = candidate - first_candidate_of(node);
  const int candidates = first_candidate_of(node + 1) - first_candidate_of(node);
  const auto ranks = topology_->ranks_on(node);
  return ranks[static_cast<std::size_t>(scaled(turn, static_cast<int>(ranks.size()), candidates))];
}

std::optional<int> AgentMap::agent_at(int rank) const {
  if (count_ == 0 || are_io_nodes()) return std::nullopt;
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
  if (count_ == 0 || are_io_nodes()) return {};
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

// If there are fewer parts than agents. The parts that have one more agent come first.
std::size_t AgentMap::part_of_agent(int agent) const {
  const int parts = static_cast<int>(parts_.size());
  const int agents = count_ / parts;
  const int in_larger = count_ % parts * (agents + 1);
  return static_cast<std::size_t>(
      agent < in_larger ? agent / (agents + 1) : count_ % parts + (agent - in_larger) / agents);
}

TargetRange AgentMap::cut(std::size_t part, int turn) const {
  return share_of(parts_[part].range, agents_of_part(part), window_bytes_, turn);
}

// Of the whole span's parts.
std::vector<Domain> AgentMap::parts_in(FileRange range) const {
  std::vector<Domain> domains;
  for (const Domain& part : parts_) {
    const TargetRange own{layout_->below(part.subfile, range.begin),
                          layout_->below(part.subfile, range.end)};
    if (!own.empty()) domains.push_back({part.subfile, own});
  }
  return domains;
}

TargetRange AgentMap::share_of_span(int agent) const {
  return share_of({{span_.begin.value}, {span_.end.value}}, count_, window_bytes_, agent);
}

AgentMap::Owner AgentMap::owner_of(std::size_t part, TargetOffset at) const {
  const Domain& whole = parts_[part];
  if (layout_ != nullptr) {
    const FileOffset offset = layout_->run_at(whole.subfile, at).begin;
    const int agent =
        owner_in({{span_.begin.value}, {span_.end.value}}, count_, window_bytes_, {offset.value});
    return {agent, layout_->below(whole.subfile, {share_of_span(agent).end.value})};
  }
  if (parts_.size() >= static_cast<std::size_t>(count_))
    return {static_cast<int>(part) % count_, whole.range.end};
  const int turn = owner_in(whole.range, agents_of_part(part), window_bytes_, at);
  return {first_agent_of_part(part) + turn, cut(part, turn).end};
}

std::vector<Domain> AgentMap::domains_of(int agent) const {
  if (layout_ != nullptr) {
    const TargetRange range = share_of_span(agent);
    return parts_in({{range.begin.value}, {range.end.value}});
  }
  std::vector<Domain> domains;
  const auto parts = static_cast<std::size_t>(parts_.size());
  if (parts >= static_cast<std::size_t>(count_)) {
    for (auto part = static_cast<std::size_t>(agent); part < parts;
         part += static_cast<std::size_t>(count_))
      domains.push_back(parts_[part]);
    return domains;
  }
  const std::size_t part = part_of_agent(agent);
  const TargetRange range = cut(part, agent - first_agent_of_part(part));
  if (!range.empty()) domains.push_back({parts_[part].subfile, range});
  return domains;
}

}  // namespace shima
