// Cuts a transfer into pieces whose memory side is host memory.
//
// Host memory is one piece. Device memory is copied through a bounded buffer
// (device/staged_memory.h); a read ends with an empty piece, returned when the last bytes are on
// the device. In a collective call every member contributes a piece to each round, an empty one if
// it has none left, and the rounds end when no member expects more.
#pragma once

#include <cstdint>
#include <memory>

#include "collective/plan/plan.h"
#include "device/staged_memory.h"
#include "file/file.h"

namespace shima {

class TransferPieces {
 public:
  struct How {
    Direction direction;
    bool staged = true;              // false: device memory is one piece as well
    std::uint64_t buffer_bytes = 0;  // 0: automatic
  };
  // `pool` and `whole` must outlive this object. Errors are returned by next().
  TransferPieces(QueuePool& pool, const Result<Transfer>& whole, const How& how) noexcept;

  // The next piece, or an error: that of `whole`, or of the driver.
  [[nodiscard]] Result<Transfer> next();
  // The number of pieces after the last one returned by next(), if no error occurs.
  [[nodiscard]] std::uint64_t more() const;
  // Reports how many bytes of the last piece were moved. A read that moved fewer than requested has
  // reached the end of the file.
  void moved(std::uint64_t len_bytes);
  // The sum over all pieces.
  [[nodiscard]] std::uint64_t total_moved() const { return total_; }

 private:
  [[nodiscard]] Result<Transfer> next_staged();
  [[nodiscard]] bool reads() const { return direction_ == Direction::read; }

  const Result<Transfer>& whole_;
  const Direction direction_;
  std::unique_ptr<StagedMemory> staged_;  // null: host memory
  Status status_;
  bool ended_ = false;  // the last piece, which may be empty, was returned
  std::uint64_t total_ = 0;
};

}  // namespace shima
