#include "group/topology.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace shima {
namespace {

// Whether the NUMA domains of each node follow one another in the order of ranks.
bool numa_domains_follow(std::span<const Member> members, int node_count) {
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

bool has_numa_domains(std::span<const Member> members) {
  return std::ranges::any_of(
      members, [](const Member& member) { return member.numa_domain != Member::no_domain; });
}

// Puts the ranks of one of several nodes, in ascending order, into the order of their indices.
void order_by_numa_domain(std::span<const Member> members, std::span<int> ranks) {
  const auto domain_of = [&](int rank) {
    return members[static_cast<std::size_t>(rank)].numa_domain;
  };
  std::map<int, int> first_ranks;  // by domain
  for (const int rank : ranks) first_ranks.emplace(domain_of(rank), rank);
  std::ranges::stable_sort(ranks, {}, [&](int rank) { return first_ranks.at(domain_of(rank)); });
}

}  // namespace

Topology::Topology(std::span<const Member> members) : size_(static_cast<int>(members.size())) {
  make_rows(members);
  number_candidates();
  const auto beyond = std::ranges::find_if(members, [](const Member& m) { return m.node != 0; });
  block_ = std::max(1, static_cast<int>(beyond - members.begin()));
  kind_ = kind_of(members);
  if (kind_ == Kind::listed) list(members);
}

void Topology::make_rows(std::span<const Member> members) {
  std::vector<Node> nodes;
  for (const Member& member : members) {
    const auto node = static_cast<std::size_t>(member.node);
    if (node >= nodes.size()) nodes.resize(node + 1);
    nodes[node] = {nodes[node].members + 1, member.cores};
  }
  for (const Node& node : nodes) add_nodes(node, 1);
}

void Topology::add_nodes(const Node& each, int count) {
  if (rows_.empty() || rows_.back().members != each.members || rows_.back().cores != each.cores)
    rows_.push_back({.first_node = node_count_,
                     .members = each.members,
                     .cores = each.cores,
                     .first_member = members_before(node_count_)});
  node_count_ += count;
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

void Topology::set_node_cores(std::span<const int> cores) {
  std::vector<Node> nodes;
  nodes.reserve(cores.size());
  for (const int of_node : cores)
    nodes.push_back({row_of_node(static_cast<int>(nodes.size())).members, of_node});
  rows_.clear();
  node_count_ = 0;
  for (const Node& node : nodes) add_nodes(node, 1);
  number_candidates();
}

void Topology::set_apart() {
  rows_.clear();
  places_.clear();
  ranks_.clear();
  kind_ = Kind::consecutive;
  block_ = 1;
  node_count_ = 0;
  add_nodes({.members = 1, .cores = 1}, size_);
  number_candidates();
}

// Of each row its nodes, and a node's members and cores.
std::vector<std::int32_t> Topology::row_words() const {
  std::vector<std::int32_t> words;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const int end = i + 1 < rows_.size() ? rows_[i + 1].first_node : node_count_;
    words.insert(words.end(), {end - rows_[i].first_node, rows_[i].members, rows_[i].cores});
  }
  return words;
}

// The words are the kind, the ranks dealt at a time, the number of rows, the rows, and the ranks of
// a listed placement, node by node.
std::vector<std::int32_t> Topology::words() const {
  std::vector<std::int32_t> words{static_cast<std::int32_t>(kind_), block_,
                                  static_cast<std::int32_t>(rows_.size())};
  const std::vector<std::int32_t> rows = row_words();
  words.insert(words.end(), rows.begin(), rows.end());
  words.insert(words.end(), ranks_.begin(), ranks_.end());
  return words;
}

Status Topology::read_rows(std::span<const std::int32_t> words) {
  Topology other;
  const auto has_same_nodes = [&] {
    if (other.size_ != size_ || other.node_count_ != node_count_) return false;
    for (int node = 0; node < node_count_; ++node)
      if (other.row_of_node(node).members != row_of_node(node).members) return false;
    return true;
  };
  if (words.size() % words_of_row != 0 || !other.add_rows(words) || !has_same_nodes())
    return fail(Code::internal, "the cores of nodes were not understood");
  rows_ = std::move(other.rows_);
  return {};
}

Result<Topology> Topology::of_words(std::span<const std::int32_t> words) {
  const auto wrong = [] { return fail(Code::internal, "a placement of ranks was not understood"); };
  constexpr std::size_t head = 3;
  if (words.size() < head || words[0] < 0 || words[0] > static_cast<int>(Kind::listed) ||
      words[1] < 1 || words[2] < 1 ||
      static_cast<std::size_t>(words[2]) > (words.size() - head) / words_of_row)
    return wrong();
  Topology made;
  made.kind_ = static_cast<Kind>(words[0]);
  made.block_ = words[1];
  const auto rows = words.subspan(head, static_cast<std::size_t>(words[2]) * words_of_row);
  const auto ranks = words.subspan(head + rows.size());
  const bool lists = made.kind_ == Kind::listed;
  if (!made.add_rows(rows)) return wrong();
  if (ranks.size() != (lists ? static_cast<std::size_t>(made.size_) : 0)) return wrong();
  if (made.kind_ == Kind::dealt && !made.is_dealt()) return wrong();
  if (lists && !made.list_ranks(ranks)) return wrong();
  return made;
}

// Whether there can be such rows.
bool Topology::add_rows(std::span<const std::int32_t> rows) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  std::int64_t size = 0;
  for (std::size_t i = 0; i < rows.size(); i += words_of_row) {
    const std::int32_t count = rows[i];
    const Node each{rows[i + 1], rows[i + 2]};
    if (count < 1 || each.members < 1 || each.cores < 1) return false;
    size += std::int64_t{count} * each.members;
    if (size > most) return false;
    add_nodes(each, count);
  }
  size_ = static_cast<int>(size);
  number_candidates();
  return true;
}

// Whether each node has the members that dealing gives it.
bool Topology::is_dealt() const {
  const std::int64_t turn = std::int64_t{block_} * node_count_;
  for (int node = 0; node < node_count_; ++node) {
    const std::int64_t rest = size_ % turn - std::int64_t{node} * block_;
    const std::int64_t dealt = size_ / turn * block_ + std::clamp<std::int64_t>(rest, 0, block_);
    if (row_of_node(node).members != dealt) return false;
  }
  return true;
}

// Whether the ranks are those of all members, each once.
bool Topology::list_ranks(std::span<const std::int32_t> ranks) {
  constexpr int unknown = -1;
  places_.assign(ranks.size(), {.node = unknown});
  ranks_.assign(ranks.begin(), ranks.end());
  for (int node = 0; node < node_count_; ++node) {
    const NodeRanks here = ranks_on(node);
    for (std::size_t i = 0; i < here.size(); ++i) {
      if (here[i] < 0 || here[i] >= size_) return false;
      Place& place = places_[static_cast<std::size_t>(here[i])];
      if (place.node != unknown) return false;
      place = {node, static_cast<int>(i)};
    }
  }
  return true;
}

Topology::Kind Topology::kind_of(std::span<const Member> members) const {
  if (node_count_ > 1 && has_numa_domains(members) && !numa_domains_follow(members, node_count_))
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
    order_by_numa_domain(members, here);
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
