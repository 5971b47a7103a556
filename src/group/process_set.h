// Processes that act together, declared by an array of their process IDs (PFF's process set).
//
// The members of a set open files together: each file gets its own channel, like the files of a
// communicator.
#pragma once

#include <memory>
#include <span>

#include "group/node_channel.h"
#include "group/roll_call.h"

namespace shima {

class ProcessSet {
 public:
  virtual ~ProcessSet() = default;

  // Processes of one node. Blocks until all members have arrived; for errors see call_roll().
  [[nodiscard]] static Result<std::unique_ptr<ProcessSet>> meet(const RollCall& call);

  [[nodiscard]] virtual int index() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  // A channel for another file. Collective: all members make their channels in the same order.
  [[nodiscard]] virtual Result<std::unique_ptr<Channel>> make_channel() = 0;
  // Waits for all members. Collective.
  [[nodiscard]] virtual Status barrier() = 0;
};

// The state of this node's members, before they have met.
[[nodiscard]] std::shared_ptr<NodeGround> ground_for(std::span<const pid_t> pids);
// After they have.
void take_segment(NodeGround& ground, std::shared_ptr<NodeSegment> segment);
// Waits for the members of a set's own channel.
[[nodiscard]] Status meet_in(Channel& channel);

}  // namespace shima
