// After a system call, the return of each function that was active costs a mispredicted branch
// (about 5 ns each, measured). So functions on the way of a small access become part of their
// callers (always_inline, also in other files of this way), and rarer cases are functions apart.
#include "file/own_access.h"

#include <algorithm>

#include "collective/plan/plan.h"
#include "file/transfer_pieces.h"
#include "independent/combine.h"
#include "independent/scattered.h"
#include "store/striped/range_lock.h"

namespace shima {

void OwnAccess::tune(bool atomic) {
  atomic_ = atomic;
  read_ahead_.enable(parts_.hints.shima_read_ahead != Toggle::disable && !parts_.hints.direct_read);
}

Result<std::uint64_t> OwnAccess::write(const Transfer& transfer, Counters& counters) {
  SHIMA_TRY_ASSIGN(bool done, keep(transfer));
  if (!done) {
    SHIMA_TRY_ASSIGN(done, combine(transfer, counters));
  }
  if (done) return transfer.file.len_bytes;
  return move(Direction::write, transfer, counters);
}

Result<std::uint64_t> OwnAccess::read(const Transfer& transfer, Counters& counters) {
  if (parts_.caches != Caches::apart) return move(Direction::read, transfer, counters);
  return read_after_own_writes(transfer, counters);
}

// A member must read what it has written, so pending writes that overlap the read are flushed
// first.
Result<std::uint64_t> OwnAccess::read_after_own_writes(const Transfer& transfer,
                                                       Counters& counters) {
  const Bounds bounds = bounds_of(transfer.file);
  {
    const std::lock_guard lock(pending_mutex_);
    if (pending_.touches(bounds)) SHIMA_TRY(write_pending());
  }
  const auto moved = move(Direction::read, transfer, counters);
  if (!moved || *moved == transfer.file.len_bytes) return moved;
  {
    const std::lock_guard lock(pending_mutex_);
    if (pending_.end() <= bounds.lowest) return moved;
    SHIMA_TRY(write_pending());  // pending writes extend the file
  }
  return move(Direction::read, transfer, counters);
}

Result<FileOffset> OwnAccess::size() {
  const std::lock_guard lock(pending_mutex_);
  SHIMA_TRY_ASSIGN(const FileOffset stored, parts_.file.size());
  return std::max(stored, FileOffset{pending_.end()});
}

// Adds the write to the pending ones, if it may wait until all members write together.
Result<bool> OwnAccess::keep(const Transfer& transfer) {
  if (parts_.caches != Caches::apart || atomic_ || transfer.file.len_bytes == 0) return false;
  const bool may_wait = !transfer.device && parts_.hints.shima_combine != Toggle::disable &&
                        PendingWrites::worth_keeping(transfer.file);
  const std::lock_guard lock(pending_mutex_);
  if (may_wait && pending_.keep(transfer)) return true;
  // Pending older bytes must be written before newer ones at the same offsets.
  if (may_wait || pending_.touches(bounds_of(transfer.file))) SHIMA_TRY(write_pending());
  return may_wait && pending_.keep(transfer);
}

Status OwnAccess::flush() {
  const std::lock_guard lock(pending_mutex_);
  return write_pending();
}

// Called with pending_mutex_ held.
Status OwnAccess::write_pending() {
  if (pending_.empty()) return {};
  const PendingWrites::Batch batch = pending_.take();
  Counters counters;
  const auto written = move(Direction::write, batch.transfer, counters);
  parts_.counters.add(counters);
  return status_of(written);
}

bool OwnAccess::any_pending() {
  const std::lock_guard lock(pending_mutex_);
  return !pending_.empty();
}

Status OwnAccess::flush_by(FunctionRef<Status(const Result<Transfer>& pending)> write) {
  const std::lock_guard lock(pending_mutex_);
  const auto batch = caught([&]() -> Result<PendingWrites::Batch> { return pending_.take(); });
  return write(batch ? Result<Transfer>(batch->transfer) : std::unexpected(batch.error()));
}

// Tries to write together with other members of the node; returns whether that was done.
Result<bool> OwnAccess::combine(const Transfer& transfer, Counters& counters) {
  if (atomic_ || parts_.caches == Caches::apart || transfer.device ||
      transfer.file.pattern.is_contiguous() || parts_.channel.write_requests() == nullptr ||
      parts_.hints.shima_combine == Toggle::disable)
    return false;
  const IndependentRequest own{Direction::write, transfer.file, transfer.memory, {}};
  if (parts_.hints.shima_combine == Toggle::automatic && goes_through_mapping(own, parts_.file))
    return false;
  const Post post = make_post(transfer.file, transfer.memory);
  const std::unique_lock alone(
      combining_, std::try_to_lock);  // one request per member; its other threads write alone
  if (!alone || !worth_combining(post, parts_.file.is_far())) return false;
  const CombinedWrite write{parts_.channel, parts_.file, counters, parts_.hints.cb_buffer_size,
                            options()};
  SHIMA_TRY_ASSIGN(const bool combined, write_combined(write, post));
  if (!combined) return false;
  ++counters.combined_writes;
  parts_.file.note_changed();  // the leader may have been inside a sync
  return true;
}

Result<std::uint64_t> OwnAccess::move(Direction direction, const Transfer& transfer,
                                      Counters& counters) {
  if (!atomic_ || transfer.file.len_bytes == 0) return move_pieces(direction, transfer, counters);
  return move_locked(direction, transfer, counters);
}

Result<std::uint64_t> OwnAccess::move_locked(Direction direction, const Transfer& transfer,
                                             Counters& counters) {
  const std::lock_guard one_at_a_time(alone_);
  const Bounds bounds = bounds_of(transfer.file);
  SHIMA_TRY_ASSIGN(const auto held,
                   RangeLock::take(parts_.file, {{bounds.lowest}, {bounds.highest}},
                                   direction == Direction::write));
  if (parts_.caches == Caches::apart) parts_.file.look_again();
  auto moved = move_pieces(direction, transfer, counters);
  if (parts_.caches != Caches::apart || direction == Direction::read) return moved;
  const Status published = parts_.file.publish();
  if (moved && !published) return std::unexpected(published.error());
  return moved;
}

[[gnu::always_inline]] inline Result<std::uint64_t> OwnAccess::move_pieces(Direction direction,
                                                                           const Transfer& transfer,
                                                                           Counters& counters) {
  return transfer.device ? move_staged(direction, transfer, counters)
                         : move_piece(direction, transfer, counters);
}

[[gnu::always_inline]] inline Result<std::uint64_t> OwnAccess::move_piece(Direction direction,
                                                                          const Transfer& piece,
                                                                          Counters& counters) {
  return move_independently({direction, piece.file, piece.memory, options()}, parts_.file,
                            counters);
}

Result<std::uint64_t> OwnAccess::move_staged(Direction direction, const Transfer& transfer,
                                             Counters& counters) {
  const Result<Transfer> whole = transfer;
  TransferPieces pieces(
      parts_.device_queues, whole,
      {.direction = direction, .buffer_bytes = parts_.hints.shima_device_buffer_size});
  do {
    SHIMA_TRY_ASSIGN(const Transfer piece, pieces.next());
    SHIMA_TRY_ASSIGN(const std::uint64_t moved, move_piece(direction, piece, counters));
    pieces.moved(moved);
  } while (pieces.more() > 0);
  return pieces.total_moved();
}

IndependentOptions OwnAccess::options() {
  return {.sieve_bytes = parts_.hints.ind_rd_buffer_size,
          .may_sieve = parts_.hints.romio_ds_read != Toggle::disable,
          .ring = parts_.hints.shima_ring,
          .may_share = parts_.cores_to_spare,
          .timed = parts_.counters.wanted(),
          .read_ahead = &read_ahead_,
          .buffer = &buffer_};
}

}  // namespace shima
