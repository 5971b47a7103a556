#include "store/remote/transfer.h"

#include <algorithm>

namespace shima::remote {

void TransferCutter::start_run() {
  done_in_run_ = 0;
  while (!rest_.empty() && rest_.front().len_bytes == 0) rest_ = rest_.subspan(1);
  if (!rest_.empty()) memory_ = PieceCursor(rest_.front().pieces);
}

TransferPart TransferCutter::next() {
  TransferPart part;
  while (!done() && part.runs.size() < most_runs && part.len_bytes < part_bytes) {
    const ApartRun& run = rest_.front();
    const std::uint64_t len = std::min(run.len_bytes - done_in_run_, part_bytes - part.len_bytes);
    part.runs.push_back({run.begin.value + as_signed(done_in_run_), len});
    for (const iovec& piece : memory_.take(len)) part.pieces.push_back(piece);
    part.len_bytes += len;
    done_in_run_ += len;
    if (done_in_run_ < run.len_bytes) continue;
    rest_ = rest_.subspan(1);
    start_run();
  }
  return part;
}

}  // namespace shima::remote
