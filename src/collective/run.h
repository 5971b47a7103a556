// A collective transfer from end to end: exchange, plan, move, agree.
#pragma once

#include "base/function_ref.h"
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
  FunctionRef<Result<std::uint64_t>(const Slice& file, const Slice& memory)> move_own;
};

struct CollectiveResult {
  std::uint64_t len_bytes = 0;    // data bytes moved
  std::uint64_t more_rounds = 0;  // the most that any member announced; the same on all
};

// Moves this member's bytes together with all others'. Collective; an error in place of a post
// makes every member fail with that code before anything is moved.
[[nodiscard]] Result<CollectiveResult> run_collective(const CollectiveCall& call,
                                                      const Result<Post>& mine);

}  // namespace shima
