// What a root does for its group, beside what it does for its tasks.
#pragma once

#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "pvas/root/loader/lazy_map.h"
#include "pvas/root/server/group.h"
#include "pvas/shared/board.h"

namespace shima::pvas {

struct GroupKeeping {
  UniqueFd file;                  // what is shared
  UniqueFd listener;              // for roots that join
  std::unique_ptr<LazyMap> lazy;  // null where all of it is mapped
  std::vector<Peer> peers;
  Board* board;
};

// Starts a thread that maps what tasks touch, gives the file to roots that join, and cleans up
// after roots that are gone; until the process ends. A thread of its own, since tasks wait for it
// while the root starts others.
void keep_group(GroupKeeping keeping);

}  // namespace shima::pvas
