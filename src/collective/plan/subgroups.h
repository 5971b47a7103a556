// Subgroups: members of one node that exchange bytes with agents on other nodes through subgroup
// masters.
//
// A subgroup has at most as many masters as its node has cores; its master for an agent is computed
// from the agent's number. Pure.
#pragma once

#include "group/topology.h"

namespace shima {

// Members of a node with consecutive indices, which are in the order of its NUMA domains.
struct Subgroup {
  int node = 0;
  int begin = 0;
  int end = 0;

  [[nodiscard]] int size() const { return end - begin; }
  [[nodiscard]] bool has(int index) const { return begin <= index && index < end; }
};

class Subgroups {
 public:
  // `most_members`: of a subgroup; 0: all members of a node form one subgroup. `topology` must
  // outlive the object.
  Subgroups(const Topology& topology, int most_members)
      : topology_(&topology), most_members_(most_members) {}

  [[nodiscard]] int count_on(int node) const;
  [[nodiscard]] Subgroup at(int node, int turn) const;
  // The subgroup of a member.
  [[nodiscard]] Subgroup of(int rank) const;
  // The masters of a subgroup are numbered from 0. Their indices on the node:
  [[nodiscard]] int master_count(const Subgroup& subgroup) const;
  [[nodiscard]] int master_at(const Subgroup& subgroup, int turn) const;
  [[nodiscard]] bool is_master(int rank) const;
  // The rank of a subgroup's master for an agent.
  [[nodiscard]] int master_for(const Subgroup& subgroup, int agent) const;

 private:
  const Topology* topology_;
  int most_members_;
};

}  // namespace shima
