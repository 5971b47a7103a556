// Combining independent noncontiguous writes that members of one node make at about the same time.
//
// A file has one write lock, so ranks that write interleaved small pieces one by one only wait for
// each other. Here one of them leads: it sweeps over the file like an elevator, window by window,
// and takes along the pieces of everybody who has posted a write by then, so that interleaved
// pieces become long runs. Whoever posts while a sweep is under way joins at its position and is
// completed by the next sweep. No member waits for one that is not inside a write of the same file.
#pragma once

#include <functional>

#include "collective/job.h"
#include "group/errands.h"

namespace shima {

struct CombinedWrite {
  Channel& channel;  // with errands
  LogicalFile& file;
  Counters& counters;
  std::uint64_t window_bytes = 0;  // 0: automatic
  // Writes a part of this member's own pieces directly; where nobody shares a window that is
  // cheaper.
  std::function<Result<std::uint64_t>(const Slice& file, const Slice& memory)> write_own;
};

// Whether a write is of the kind that gains.
[[nodiscard]] bool worth_combining(const Post& post);

// Writes all bytes of `mine`, or returns false (they may have been written in part) if this member
// has to write them itself to find out what is wrong.
[[nodiscard]] Result<bool> write_combined(const CombinedWrite& write, const Post& mine);

}  // namespace shima
