#include "group/topology.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace shima {
namespace {

// Whether the domains of each node follow one another in the order of ranks.
bool fill_domains(std::span<const Member> members, int node_count) {
  constexpr int unknown = Member::no_domain - 1;
  std::vector<int> current(static_cast<std::size_t>(node_count), unknown);
  std::set<std::pair<int, int>> known;
  for (const Member& member : members) {
    int& domain = current[static_cast<std::size_t>(member.node)];
    if (domain == member.numa_domain) continue;
    domain = member.numa_domain;
    if (!known.emplace(member.node, domain).second) return false;
  }
  return true;
}

bool names_domains(std::span<const Member> members) {
  return std::ranges::any_of(
      members, [](const Member& member) { return member.numa_domain != Member::no_domain; });
}

}  // namespace

void order_by_domain(std::span<const Member> members, std::span<int> ranks) {
  const auto domain_of = [&](int rank) {
    return members[static_cast<std::size_t>(rank)].numa_domain;
  };
  std::map<int, int> first_ranks;  // by domain
  for (const int rank : ranks) first_ranks.emplace(domain_of(rank), rank);
  std::ranges::stable_sort(ranks, {}, [&](int rank) { return first_ranks.at(domain_of(rank)); });
}

Topology::Topology(std::span<const Member> members) : size_(static_cast<int>(members.size())) {
  make_rows(members);
  number_candidates();
  const auto beyond = std::ranges::find_if(members, [](const Member& m) { return m.node != 0; });
  block_ = std::max(1, static_cast<int>(beyond - members.begin()));
  kind_ = kind_of(members);
  if (kind_ == Kind::listed) list(members);
}

void Topology::make_rows(std::span<const Member> members) {
  struct Node {
    int members = 0;
    int cores = 1;
  };
  std::vector<Node> nodes;
  for (const Member& member : members) {
    const auto node = static_cast<std::size_t>(member.node);
    if (node >= nodes.size()) nodes.resize(node + 1);
    nodes[node] = {nodes[node].members + 1, member.cores};
  }
  node_count_ = static_cast<int>(nodes.size());
  int before = 0;
  for (int i = 0; i < node_count_; ++i) {
    const Node& node = nodes[static_cast<std::size_t>(i)];
    if (rows_.empty() || rows_.back().members != node.members || rows_.back().cores != node.cores)
      rows_.push_back(
          {.first_node = i, .members = node.members, .cores = node.cores, .first_member = before});
    before += node.members;
  }
}

int Topology::Row::candidates() const { return std::clamp(cores, 1, members); }

void Topology::number_candidates() {
  int before = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    rows_[i].candidates_before = before;
    const int end = i + 1 < rows_.size() ? rows_[i + 1].first_node : node_count_;
    before += (end - rows_[i].first_node) * rows_[i].candidates();
  }
}

void Topology::set_cores(int cores) {
  for (Row& row : rows_) row.cores = cores;
  number_candidates();
}

Topology::Kind Topology::kind_of(std::span<const Member> members) const {
  if (node_count_ > 1 && names_domains(members) && !fill_domains(members, node_count_))
    return Kind::listed;
  if (std::ranges::is_sorted(members, {}, &Member::node)) return Kind::consecutive;
  for (int rank = 0; rank < size_; ++rank)
    if (members[static_cast<std::size_t>(rank)].node != rank / block_ % node_count_)
      return Kind::listed;
  return Kind::dealt;
}

void Topology::list(std::span<const Member> members) {
  std::vector<int> counts(static_cast<std::size_t>(node_count_));
  places_.resize(members.size());
  ranks_.resize(members.size());
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const int node = members[rank].node;
    const int place = members_before(node) + counts[static_cast<std::size_t>(node)]++;
    ranks_[static_cast<std::size_t>(place)] = static_cast<int>(rank);
  }
  for (int node = 0; node < node_count_; ++node) {
    const std::span<int> here =
        std::span(ranks_).subspan(static_cast<std::size_t>(members_before(node)),
                                  static_cast<std::size_t>(counts[static_cast<std::size_t>(node)]));
    order_by_domain(members, here);
    for (std::size_t i = 0; i < here.size(); ++i)
      places_[static_cast<std::size_t>(here[i])] = {node, static_cast<int>(i)};
  }
}

const Topology::Row& Topology::row_of_node(int node) const {
  return *(std::ranges::upper_bound(rows_, node, {}, &Row::first_node) - 1);
}

Topology::Place Topology::place_of(int rank) const {
  if (kind_ == Kind::listed) return places_[static_cast<std::size_t>(rank)];
  if (kind_ == Kind::dealt) {
    const int turn = rank / block_;
    return {turn % node_count_, turn / node_count_ * block_ + rank % block_};
  }
  const int node = node_of_place(rank);
  return {node, rank - members_before(node)};
}

int Topology::node_of(int rank) const { return place_of(rank).node; }

int Topology::index_of(int rank) const { return place_of(rank).index; }

NodeRanks Topology::ranks_on(int node) const {
  const Row& row = row_of_node(node);
  if (kind_ == Kind::dealt) return {node * block_, block_, node_count_ * block_, row.members};
  const int first = members_before(node);
  if (kind_ == Kind::consecutive) return {first, row.members, 0, row.members};
  return NodeRanks(std::span(ranks_).subspan(static_cast<std::size_t>(first),
                                             static_cast<std::size_t>(row.members)));
}

int Topology::candidates_before(int node) const {
  if (rows_.empty()) return 0;
  const Row& row = row_of_node(node);
  return row.candidates_before + (node - row.first_node) * row.candidates();
}

int Topology::members_before(int node) const {
  if (rows_.empty()) return 0;
  const Row& row = row_of_node(node);
  return row.first_member + (node - row.first_node) * row.members;
}

int Topology::node_of_place(int place) const {
  const Row& row = *(std::ranges::upper_bound(rows_, place, {}, &Row::first_member) - 1);
  return row.first_node + (place - row.first_member) / row.members;
}

int Topology::node_of_candidate(int candidate) const {
  const Row& row = *(std::ranges::upper_bound(rows_, candidate, {}, &Row::candidates_before) - 1);
  return row.first_node + (candidate - row.candidates_before) / row.candidates();
}

}  // namespace shima
