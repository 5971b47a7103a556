#include "group/topology.h"

#include <algorithm>

namespace shima {

Topology::Topology(std::span<const Member> members)
    : places_(members.size()), ranks_(members.size()) {
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const auto node = static_cast<std::size_t>(members[rank].node);
    if (node >= nodes_.size()) nodes_.resize(node + 1);
    nodes_[node].cores = members[rank].cores;
    places_[rank] = {members[rank].node, static_cast<int>(nodes_[node].rank_count++)};
  }
  std::size_t first = 0;
  for (Node& node : nodes_) {
    node.first_rank = first;
    first += node.rank_count;
  }
  number_candidates();
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const Place& at = places_[rank];
    ranks_[nodes_[static_cast<std::size_t>(at.node)].first_rank +
           static_cast<std::size_t>(at.index)] = static_cast<int>(rank);
  }
}

void Topology::number_candidates() {
  candidates_ = 0;
  for (Node& node : nodes_) {
    node.candidates_before = candidates_;
    candidates_ += std::clamp(node.cores, 1, static_cast<int>(node.rank_count));
  }
}

void Topology::set_cores(int cores) {
  for (Node& node : nodes_) node.cores = cores;
  number_candidates();
}

int Topology::node_of_candidate(int candidate) const {
  const auto beyond = std::ranges::upper_bound(nodes_, candidate, {}, &Node::candidates_before);
  return static_cast<int>(beyond - nodes_.begin()) - 1;
}

}  // namespace shima
