// How many ranks learn who is on their node.
//
// Rank 0 gathers the node and the process of each rank. It tells all ranks the placement, which is
// a few numbers if it is regular (group/topology.h), and the process of each node's leader. To each
// leader it then tells the processes of its node. The leader tells its node, together with where
// the node's memory is (introduction/node_memory.h).
#pragma once

#include <cstddef>
#include <vector>

#include "mpiio/comm/introduction/first_meetings.h"
#include "mpiio/comm/introduction/first_messages.h"
#include "mpiio/comm/introduction/neighbourhood.h"

namespace shima {

class ManyRanks {
 public:
  // The neighbourhood of this rank, of whose processes it knows the leader's and its own. An error
  // may be of this rank alone. Collective.
  [[nodiscard]] Result<Neighbourhood> meet(FirstMeetings& meetings, const Status& ready);
  // The leader of a node learns of all its processes. Collective over the leaders.
  [[nodiscard]] Status tell_leaders(FirstMessages& messages, Neighbourhood& around);

 private:
  [[nodiscard]] NearProcess process_of(int rank) const {
    return places_[static_cast<std::size_t>(rank)].process;
  }
  // The message to all ranks.
  [[nodiscard]] std::vector<std::byte> survey(const Gathered<Place>& places);
  void list_processes_of(int node);

  // In rank 0.
  Gathered<Place> places_;
  Topology topology_;
  std::vector<NearProcess> list_;  // memory for the processes of one node
};

}  // namespace shima
