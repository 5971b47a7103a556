#include "collective/plan/subgroups.h"

#include <algorithm>

namespace shima {

int Subgroups::count_on(int node) const {
  const int members = static_cast<int>(topology_->ranks_on(node).size());
  return most_members_ == 0 ? 1 : (members + most_members_ - 1) / most_members_;
}

Subgroup Subgroups::at(int node, int turn) const {
  const int members = static_cast<int>(topology_->ranks_on(node).size());
  const int subgroups = count_on(node);
  return {node, turn * members / subgroups, (turn + 1) * members / subgroups};
}

Subgroup Subgroups::of(int rank) const {
  const int node = topology_->node_of(rank);
  const int index = topology_->index_of(rank);
  int turn = 0;
  while (!at(node, turn).has(index)) ++turn;
  return at(node, turn);
}

int Subgroups::master_count(const Subgroup& subgroup) const {
  return std::clamp(topology_->cores_of(subgroup.node), 1, subgroup.size());
}

int Subgroups::master_at(const Subgroup& subgroup, int turn) const {
  return subgroup.begin + turn * subgroup.size() / master_count(subgroup);
}

bool Subgroups::is_master(int rank) const {
  const Subgroup subgroup = of(rank);
  const int masters = master_count(subgroup);
  // The first master at or behind the member.
  const int turn = ((topology_->index_of(rank) - subgroup.begin) * masters + subgroup.size() - 1) /
                   subgroup.size();
  return turn < masters && master_at(subgroup, turn) == topology_->index_of(rank);
}

int Subgroups::master_for(const Subgroup& subgroup, int agent) const {
  const int index = master_at(subgroup, agent % master_count(subgroup));
  return topology_->ranks_on(subgroup.node)[static_cast<std::size_t>(index)];
}

}  // namespace shima
