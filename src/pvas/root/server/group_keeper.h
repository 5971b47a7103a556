// The services of a root for its group, in a separate thread.
#pragma once

#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "pvas/root/loader/lazy_map.h"
#include "pvas/root/server/group.h"
#include "pvas/shared/space_state.h"

namespace shima::pvas {

struct GroupKeeping {
  UniqueFd file;                  // the shared memfd
  UniqueFd listener;              // for roots that join
  std::unique_ptr<LazyMap> lazy;  // null if all of it is mapped
  std::vector<Peer> peers;
  SpaceState* space_state;
};

// Starts a thread that maps memory when tasks touch it, passes the memfd to roots that join, and
// removes what dead roots left behind; it runs until the process ends. It is separate because tasks
// wait for it while the root starts others.
void keep_group(GroupKeeping keeping);

}  // namespace shima::pvas
