// Rendezvous of processes that were not started together.
//
// They know only the array of their process IDs. The first process of the array creates the memory
// that they will share, and beside it a roll: a memfd whose name is a digest of the array. The
// others search for that name under /proc/PID/fd of the first, which only processes of the same
// user can read, so that no name can be squatted and nothing needs cleanup. Each process maps both
// and marks itself present; the last one to arrive ends the call. A process that cannot take part
// also marks itself present, with its error: all leave with that error when all have arrived. A
// process that finds a member dead, or the time expired, writes that outcome into the roll
// permanently, so that all that arrived leave with the same outcome.
//
// If the limit on file sizes (RLIMIT_FSIZE) forbids a memfd of that size, the roll is a System V
// segment, and the name of an empty memfd contains its ID.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "group/node/node_segment.h"

namespace shima {

inline constexpr int most_on_a_roll = 4096;

struct RollCall {
  std::span<const pid_t> pids;  // the same on all; includes this process
  std::uint64_t number = 0;     // distinguishes calls of the same processes
  std::optional<std::chrono::milliseconds> timeout;
  Status ready = {};  // an error of this process, with which all leave
};

// The shared memory, once all have arrived and introduced themselves. Blocks. Errors: bad_argument
// (the array), peer_lost (no such process, or it has exited), access_denied (another user's
// process), timed_out, and those of a process that cannot take part. One that can neither
// make nor open the roll cannot say so: the others wait until it exits or the time limit expires.
[[nodiscard]] Result<std::shared_ptr<NodeSegment>> call_roll(const RollCall& call);

}  // namespace shima
