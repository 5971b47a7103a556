// Ends all processes that this one has started, and those that they have started.
//
// After become_reaper() this process becomes the parent of descendants whose own parent has ended,
// so that none escapes.
#pragma once

#include <sys/types.h>

#include <vector>

namespace shima::dse {

void become_reaper();
// At present.
[[nodiscard]] std::vector<pid_t> descendants();
// Kills all, and waits until none is left.
void kill_descendants();

}  // namespace shima::dse
