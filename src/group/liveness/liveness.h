// Whether all members of a communicator live, for members on several nodes.
//
// MPI does not tell that another rank has died. Each node has a leader, whose thread watches the
// node's processes (group/liveness/lookout.h) and has one connection to a hub at rank 0
// (group/liveness/hub.h). So a member learns from one word in memory, which it reads while it
// waits, that some member was lost. A process that is slow or stopped is not lost. A process that
// has left, because it has freed the communicator or ended MPI, cannot be lost.
#pragma once

#include <memory>
#include <span>

#include "base/result.h"
#include "group/liveness/hub.h"
#include "group/liveness/lookout.h"

namespace shima {

class Liveness {
 public:
  // For rank 0: a hub at `addresses`; null, and logged, if there is none.
  [[nodiscard]] static std::shared_ptr<Hub> start_hub(std::span<const SocketAddress> addresses,
                                                      std::size_t node_count);
  // Every member joins, after the hub has started; rank 0 brings the hub. A leader connects; if it
  // cannot, which is logged, the members of its node learn only of losses on their node.
  [[nodiscard]] static std::shared_ptr<Liveness> join(WatchedNode node,
                                                      const ServiceAddress& address,
                                                      std::shared_ptr<Hub> hub);
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;
  // This process leaves.
  ~Liveness();

  // An error once a member was lost.
  [[nodiscard]] Status check() const noexcept;
  // Not 0 once a member was lost, but for this node's leader.
  [[nodiscard]] const std::atomic<std::uint32_t>& lost_word() const { return *node_.lost; }

 private:
  Liveness(WatchedNode node, std::shared_ptr<Hub> hub);
  void leave();
  friend void leave_all();

  WatchedNode node_;
  std::shared_ptr<Hub> hub_;          // of rank 0
  std::shared_ptr<Lookout> lookout_;  // of a leader
};

// The error that a word of lost members describes: rank + 1, or 0.
[[nodiscard]] Status check_lost(std::uint32_t word) noexcept;

// This process leaves all communicators, before it exits: its MPI has ended. Ends all threads.
void leave_all();

}  // namespace shima
