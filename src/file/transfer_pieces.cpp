#include "file/transfer_pieces.h"

#include <utility>

namespace shima {

TransferPieces::TransferPieces(QueuePool& pool, const Result<Transfer>& whole,
                               const How& how) noexcept
    : whole_(whole), direction_(how.direction) {
  if (!whole || !whole->device || !how.staged) return;
  auto staged = caught([&] {
    return StagedMemory::begin(pool, {whole->memory, *whole->device},
                               reads() ? DeviceCopy::to_device : DeviceCopy::from_device,
                               how.buffer_bytes);
  });
  if (!staged) {
    status_ = std::unexpected(staged.error());
    return;
  }
  staged_ = *std::move(staged);
}

Result<Transfer> TransferPieces::next() {
  SHIMA_TRY(status_);
  if (staged_ != nullptr) return caught([&] { return next_staged(); });
  if (std::exchange(ended_, true)) return Transfer{};
  return whole_;
}

Result<Transfer> TransferPieces::next_staged() {
  if (staged_->pieces_left() == 0) {
    ended_ = true;
    SHIMA_TRY(staged_->finish());
    return Transfer{};
  }
  SHIMA_TRY_ASSIGN(Slice memory, staged_->next());
  Slice file = whole_->file;
  file.first_byte += total_;
  file.len_bytes = memory.len_bytes;
  if (!reads()) ended_ = staged_->pieces_left() == 0;
  return Transfer{.file = std::move(file), .memory = std::move(memory)};
}

std::uint64_t TransferPieces::more() const {
  if (staged_ == nullptr || ended_) return 0;
  return staged_->pieces_left() + (reads() ? 1 : 0);
}

void TransferPieces::moved(std::uint64_t len_bytes) {
  total_ += len_bytes;
  if (staged_ != nullptr && reads() && !ended_)
    status_ = caught([&] { return staged_->filled(len_bytes); });
}

}  // namespace shima
