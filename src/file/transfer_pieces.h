// A transfer cut into pieces of which each one's memory side is host memory.
//
// Host memory is one piece. Device memory passes through a bounded buffer (device/staged_memory.h);
// a read ends with an empty piece, which comes when the last bytes are on the device. In a
// collective call every member brings a piece to each round, an empty one when it has none left,
// and the rounds end when no member expects more.
#pragma once

#include <cstdint>
#include <memory>

#include "collective/plan.h"
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
  // `pool` and `whole` must outlive this object. Throws nothing: next() reports what went wrong.
  TransferPieces(QueuePool& pool, const Result<Transfer>& whole, const How& how) noexcept;

  // The next piece, or why there is none: the error that `whole` is, or one of the driver.
  [[nodiscard]] Result<Transfer> next();
  // How many pieces come after the one that next() gave last, if all goes well.
  [[nodiscard]] std::uint64_t more() const;
  // How many bytes of the last piece were moved. A read that moved fewer than all has met the end
  // of the file.
  void moved(std::uint64_t len_bytes);
  // Of all pieces.
  [[nodiscard]] std::uint64_t total_moved() const { return total_; }

 private:
  [[nodiscard]] Result<Transfer> next_staged();
  [[nodiscard]] bool reads() const { return direction_ == Direction::read; }

  const Result<Transfer>& whole_;
  const Direction direction_;
  std::unique_ptr<StagedMemory> staged_;  // null: host memory
  Status status_;
  bool ended_ = false;  // the last piece, which may be empty, was given
  std::uint64_t total_ = 0;
};

}  // namespace shima
