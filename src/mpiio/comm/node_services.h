// What the nodes of a communicator need of each other besides messages: rank 0 keeps the shared
// file pointers, and tells all nodes when one of them has lost a rank.
//
// The leader of each node tells rank 0 of its node. Rank 0 starts the services, and tells all ranks
// where they are and what follows from the nodes together. Only rank 0 has the facts of every node.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "group/liveness/lookout.h"
#include "group/topology.h"
#include "mpiio/comm/introduction/first_meetings.h"
#include "mpiio/comm/introduction/first_messages.h"
#include "mpiio/comm/introduction/neighbourhood.h"
#include "mpiio/comm/message_channel.h"
#include "net/job_network.h"

namespace shima {

// Of one node; plain data.
struct NodeFacts {
  std::int32_t cores = 1;
  std::int32_t can_pull = 0;
  NodeAddresses addresses;
  std::array<char, 64> host{};  // its name; a longer one is left out

  [[nodiscard]] static NodeFacts of(const NodeSegment& segment);
};

// What rank 0 tells of the nodes.
struct NodesTold {
  Topology topology;  // with the cores of the nodes
  bool can_pull = false;
  ServiceAddress pointer;  // no endpoints: there is no such service
  ServiceAddress hub;
  std::vector<std::string> hosts;  // of the first nodes
};

class NodeServices {
 public:
  NodeServices() = default;
  NodeServices(const NodeServices&) = delete;
  NodeServices& operator=(const NodeServices&) = delete;
  // Ends services that nothing has joined.
  ~NodeServices();

  // `mine`: the facts of this rank's node, or the error of this rank alone. Collective. The error
  // of any node's leader is the result on all.
  [[nodiscard]] Result<NodesTold> start(FirstMeetings& meetings, FirstMessages& messages,
                                        const Neighbourhood& around, const Result<NodeFacts>& mine);
  // Makes this rank a client of the services, which are then part of `ground`.
  void join(const NodesTold& told, WatchedNode watched, MessageGround& ground);

 private:
  [[nodiscard]] NodesTold begin(std::span<const NodeFacts> facts, const Topology& placement);

  std::shared_ptr<PointerService> pointers_;  // of rank 0
  std::shared_ptr<Hub> hub_;                  // likewise
};

}  // namespace shima
