// A space's way into a group of spaces that share memory.
//
// A root that has the group's file listens under a name that says so, and gives the file to roots
// that join. Joining is done under a lock, a name that only one process can have: who finds nobody
// with the file makes it. Roots keep their connections, and so learn when one of them is gone.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "pvas/root/server/space.h"
#include "pvas/shared/board.h"

namespace shima::pvas {

// Another space of the group, as seen on a connection to its root; incarnation 0 until it has said
// who it is.
struct Peer {
  UniqueFd socket;
  int slice = 0;
  std::uint32_t incarnation = 0;
};

// Maps what the group shares into this space and notes it on the board; `eager`: all of it at once,
// also where it could be mapped when it is touched.
[[nodiscard]] Status join_group(Board& board, Slice slice, const std::string& group, bool eager);

}  // namespace shima::pvas
