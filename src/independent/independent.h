// One member's own I/O: moves pieces of the file to or from pieces of memory, in as few system
// calls as the two patterns allow.
#pragma once

#include "base/direction.h"
#include "base/fault_point.h"
#include "base/toggle.h"
#include "collective/plan/plan.h"
#include "independent/contiguous_piece.h"
#include "independent/read_ahead.h"
#include "independent/spare_buffer.h"
#include "observe/counters.h"
#include "pattern/pattern.h"
#include "store/striped/logical_file.h"

namespace shima {

constexpr std::uint64_t default_sieve_bytes = std::uint64_t{1} << 20;

// Options of a member's own I/O.
struct IndependentOptions {
  std::uint64_t sieve_bytes = 0;  // buffer of a sieving read; 0: automatic
  bool may_sieve = true;
  Toggle ring = Toggle::automatic;  // io_uring for scattered pieces (see scattered.h)
  bool may_share = false;           // a second thread of this process may help
  bool timed = true;                // measure the time of file calls
  ReadAhead* read_ahead = nullptr;  // notified of each read, if not null
  SpareBuffer* buffer = nullptr;    // kept between calls, if not null
};

struct IndependentRequest {
  Direction direction;
  const Slice& file;
  const Slice& memory;
  IndependentOptions options = {};
};

// Blocks; returns the data bytes moved. A read stops at the end of the file.
[[nodiscard]] Result<std::uint64_t> move_independently(const IndependentRequest& request,
                                                       LogicalFile& file, Counters& counters);

// The same for a contiguous piece, with nothing counted or measured. Part of its callers: see
// file/own_access.cpp.
[[nodiscard, gnu::always_inline]] inline Result<std::uint64_t> move_contiguous(
    const ContiguousPiece& piece, ReadAhead* read_ahead, LogicalFile& file) {
  const std::uint64_t len_bytes = piece.memory.size();
  fault_point(FaultPhase::disk);
  if (piece.direction == Direction::read) {
    if (read_ahead != nullptr) read_ahead->before_read(piece.begin, len_bytes);
    return file.read(piece.begin, piece.memory.data(), len_bytes);
  }
  SHIMA_TRY(file.write(piece.begin, piece.memory.data(), len_bytes));
  return len_bytes;
}

}  // namespace shima
