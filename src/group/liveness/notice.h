// The messages between the hub of the liveness service and the nodes, in both directions.
//
// The first message of a node is `join`. `goodbye` means that the sender's process takes no further
// part: its end is no loss. The connection stays open, because the other members of its node may
// still wait for some.
#pragma once

#include <cstdint>

#include "net/wire.h"

namespace shima {

struct Notice {
  enum Kind : std::uint32_t { join = 1, lost, goodbye };

  Kind kind = join;
  std::uint32_t rank = 0;  // join: the leader's; lost: the lost member's
};

[[nodiscard]] inline bool send_notice(int socket, const Notice& notice) {
  return send_all(socket, &notice, sizeof notice);
}

}  // namespace shima
