// A collective transfer from end to end: exchange, plan, move, agree.
#pragma once

#include <functional>

#include "collective/job.h"

namespace shima {

struct CollectiveCall {
  Direction direction;
  Channel& channel;
  LogicalFile& file;
  Counters& counters;
  const Tuning& tuning;
  bool caches_apart;  // members do not see at once what others write (see Subfile::publish)
  // Does this member's own I/O alone; returns the bytes moved.
  std::function<Result<std::uint64_t>(const Slice& file, const Slice& memory)> move_own;
};

// Moves this member's bytes together with all others'. Collective; a post that carries an error
// makes every member fail with that code before anything is moved. Returns the data bytes moved.
[[nodiscard]] Result<std::uint64_t> run_collective(const CollectiveCall& call, const Post& mine);

}  // namespace shima
