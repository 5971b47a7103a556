// How the nodes of a group meet.
//
// Members meet on their node first. The first member of each node, the node leader, then meets the
// leaders of the other nodes, while the members near it wait for what it brings back.
#pragma once

#include <span>

#include "group/node/contribution.h"
#include "group/node/node_segment.h"

namespace shima {

class NodeLink {
 public:
  virtual ~NodeLink() = default;
  // Called from time to time while the leader waits for members near it.
  virtual void poll() noexcept {}
  // The maxima of all nodes' words; `value` becomes the value joined over all nodes, unless the
  // first word, the worst outcome, is not 0. For node leaders; collective over them. A node that
  // cannot be reached is an outcome, too.
  [[nodiscard]] virtual Rendezvous::Maxima meet(const Rendezvous::Maxima& mine,
                                                std::span<std::byte> value,
                                                JoinValues join) noexcept = 0;
};

}  // namespace shima
