// Which ranks of a communicator run on which node, and the processes near a rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/function_ref.h"
#include "base/process/process_handle.h"
#include "base/result.h"
#include "group/topology.h"

namespace shima {

// A process of this rank's node.
struct NearProcess {
  ProcessIdentity process;
  int numa_domain = Member::no_domain;
};

// What a rank tells of itself.
struct Place {
  std::uint64_t node = 0;  // its identity
  NearProcess process;

  [[nodiscard]] static Place own();
};

// The placement of ranks that have told where they are. Pure.
[[nodiscard]] Topology topology_of(std::size_t ranks, FunctionRef<Place(std::size_t)> place_of);

// Which ranks run on which node, before any memory is shared.
struct Neighbourhood {
  int rank = 0;
  Topology topology;              // the cores of the nodes are not known yet
  std::vector<NearProcess> near;  // by index; those of process 0 are not known yet

  [[nodiscard]] int node() const { return topology.node_of(rank); }
  [[nodiscard]] int index() const { return topology.index_of(rank); }
  [[nodiscard]] NodeRanks near_ranks() const { return topology.ranks_on(node()); }
  // The leader of a node is its first rank.
  [[nodiscard]] bool is_leader() const { return index() == 0; }
  // An error once a process of this rank's node that is known has ended.
  [[nodiscard]] Status check_local() const;
  // Where a node's members cannot share memory, every rank is a node of its own. Allocates nothing.
  void settle_apart();
};

}  // namespace shima
