// Joins a space to a group of spaces that share memory.
//
// A root that has the group's memfd listens under a well-known name and passes the memfd to roots
// that join. Joining holds a lock: a socket name that only one process can bind. A root that finds
// no listener creates the memfd. Roots keep their connections open, and so detect when one of them
// dies.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "pvas/root/server/space.h"
#include "pvas/shared/space_state.h"

namespace shima::pvas {

// Another space of the group, as seen on a connection to its root; its incarnation is 0 until it
// has introduced itself.
struct Peer {
  UniqueFd socket;
  int slice = 0;
  std::uint32_t incarnation = 0;
};

// Maps the shared memory of the group into this space and records it on the space_state. `eager`
// maps all of it at once, even where lazy mapping would be possible.
[[nodiscard]] Status join_group(SpaceState& space_state, Slice slice, const std::string& group,
                                bool eager);

}  // namespace shima::pvas
