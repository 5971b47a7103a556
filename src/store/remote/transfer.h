// Cuts a transfer of many runs into messages of bounded size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/remote/message.h"
#include "store/subfile/pieces.h"
#include "store/subfile/subfile.h"

namespace shima::remote {

// One message of a transfer.
struct TransferPart {
  std::vector<Run> runs;
  std::vector<iovec> pieces;
  std::uint64_t len_bytes = 0;
};

class TransferCutter {
 public:
  explicit TransferCutter(std::span<const ApartRun> runs) : rest_(runs) { start_run(); }

  [[nodiscard]] bool done() const { return rest_.empty(); }
  [[nodiscard]] TransferPart next();

 private:
  void start_run();

  std::span<const ApartRun> rest_;
  std::uint64_t done_in_run_ = 0;
  PieceCursor memory_{{}};
};

}  // namespace shima::remote
