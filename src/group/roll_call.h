// How processes that were not started together find each other.
//
// They know one thing: the array of their process IDs. The first of the array makes the memory that
// they are going to share, and beside it a roll: an anonymous file whose name is a digest of the
// array. The others look for that name under /proc/PID/fd of the first, where only a process of the
// same user may look, so that there is nothing to squat on and nothing to clean up. Each maps both
// and marks itself present; whoever comes last ends the call. Who finds that a process has ended,
// or that the time is up, writes so into the roll instead, for good, so that all who came leave
// with one outcome.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "group/node_segment.h"

namespace shima {

inline constexpr int most_on_a_roll = 4096;

struct RollCall {
  std::span<const pid_t> pids;  // the same on all; this process is one of them
  std::uint64_t number = 0;     // tells calls among the same processes apart
  std::optional<std::chrono::milliseconds> timeout;
};

// The memory that all share, once all have come and introduced themselves. Blocks. Errors:
// bad_argument (the array), peer_lost (no such process, or it has ended), access_denied (another
// user's), timed_out.
[[nodiscard]] Result<std::shared_ptr<NodeSegment>> call_roll(const RollCall& call);

}  // namespace shima
