// How members learn that no further request comes to an agent, if subgroups send requests only to
// the agents that they touch.
//
// A subgroup master counts itself in its node's memory once all its requests have begun to be
// received. When all masters of a node have, its leader meets the other leaders by empty messages,
// in about log2(nodes) rounds; then no request is under way to any agent, and the leader tells the
// members near it. This is a nonblocking consensus (Hoefler, Siebert, Lumsdaine: Scalable
// Communication Protocols for Dynamic Sparse Data Exchange, 2010). No step blocks.
#pragma once

#include <optional>

#include "collective/window/path_context.h"
#include "group/messenger.h"
#include "group/node_rounds.h"

namespace shima {

class RequestPhase {
 public:
  // For subgroup masters and node leaders. `near_masters`: on this node.
  RequestPhase(PathContext& context, bool is_master, int near_masters);

  [[nodiscard]] bool done() const { return done_; }
  // Does what can be done now; returns whether there was anything. `has_asked`: of this master.
  [[nodiscard]] Result<bool> step(bool has_asked);

 private:
  [[nodiscard]] Result<bool> meet_leaders();
  [[nodiscard]] Status begin(const NodeRound& round);
  // Whether the messages of the round have been sent and have arrived.
  [[nodiscard]] Result<bool> round_ended();

  PathContext& context_;
  bool is_leader_;
  int near_masters_;
  NodeRounds rounds_;
  std::optional<Messenger::Ticket> outgoing_;  // of the round
  std::optional<Messenger::Ticket> incoming_;
  bool counted_;
  bool done_ = false;
};

}  // namespace shima
