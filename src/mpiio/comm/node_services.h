// What the nodes of a communicator need of each other besides messages: rank 0 keeps the shared
// file pointers, and tells all nodes when one of them has lost a rank.
#pragma once

#include <vector>

#include "base/result.h"
#include "group/liveness/lookout.h"
#include "mpiio/comm/first_meetings.h"
#include "mpiio/comm/message_channel.h"
#include "net/job_network.h"

namespace shima {

// What a rank brings.
struct NodePlace {
  int rank = 0;
  std::vector<NodeAddresses> other_nodes;  // addresses of the nodes other than rank 0's
  std::size_t node_count = 0;              // nodes that share memory
  WatchedNode watched;
};

// Starts and finds both services. Collective. A service that cannot start is logged, and missing on
// all ranks. `last` is the error of this rank alone.
[[nodiscard]] Status join_services(FirstMeetings& meetings, const Peers& local,
                                   Result<NodePlace> place, MessageGround& ground, Status& last);

}  // namespace shima
