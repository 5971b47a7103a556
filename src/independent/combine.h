// Combines independent noncontiguous writes that members of one node make at about the same time.
//
// A file has one write lock, so ranks that write interleaved small pieces separately mostly wait
// for each other. Here one member leads: it sweeps over the file window by window, and writes the
// pieces of every member that has posted a write by then, so that interleaved pieces become long
// runs. A write that is posted during a sweep joins at the sweep's position and is completed by the
// next sweep. No member waits for one that is not inside a write of the same file.
#pragma once

#include "collective/window/path_context.h"
#include "group/node/write_requests.h"
#include "independent/independent.h"

namespace shima {

struct CombinedWrite {
  Channel& channel;  // one with write_requests()
  LogicalFile& file;
  Counters& counters;
  std::uint64_t window_bytes = 0;  // 0: automatic
  // For parts that the leader writes directly, because no other member has bytes in the window.
  IndependentOptions own;
};

// Whether combining is expected to make this write faster. `is_far`: of the file; I/O nodes merge
// the larger pieces of all their clients themselves.
[[nodiscard]] bool worth_combining(const Post& post, bool is_far);

// Writes all bytes of `mine`. False: some of them may be unwritten, and this member must write them
// itself to obtain the error.
[[nodiscard]] Result<bool> write_combined(const CombinedWrite& write, const Post& mine);

}  // namespace shima
