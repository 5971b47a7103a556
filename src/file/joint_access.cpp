// Moves the bytes of an open file, independently and collectively; counts, shows and traces each
// call.
//
// A collective access is one round or, if device memory has to be staged, several. In a round a
// member may have moved its bytes before it meets the others, or leave a small write to
// another; otherwise all members take part in a CollectiveTransfer.
#include "file/joint_file.h"

#include <sys/random.h>

#include <array>
#include <functional>

#include "collective/run.h"
#include "collective/small_write.h"
#include "file/transfer_pieces.h"
#include "group/combine_values.h"
#include "observe/board.h"
#include "observe/trace_log.h"
#include "observe/trace_runs.h"

namespace shima {
namespace {

std::uint64_t random_number() {
  std::uint64_t number = 0;
  std::ignore = ::getrandom(&number, sizeof number, 0);
  return number;
}

CallPlace place_of(Direction direction, bool together, const Transfer* transfer) {
  if (transfer != nullptr && transfer->call.code != call::none) return transfer->call;
  return {call::file_access(direction, together), nullptr};
}

Counted kind_of(CallCode code) {
  const bool write = call::is_write(code);
  if (call::is_nonblocking(code))
    return write ? Counted::nonblocking_write : Counted::nonblocking_read;
  if (call::is_together(code)) return write ? Counted::collective_write : Counted::collective_read;
  return write ? Counted::write : Counted::read;
}

// What has decided how the members of a call move its bytes.
void describe_choice(TraceEvent& event, const Counters& counters) {
  constexpr std::array<std::uint64_t Counters::*, strategy_count> by_strategy{
      &Counters::strategy_disk_directed, &Counters::strategy_two_phase,
      &Counters::strategy_subgroup, &Counters::strategy_independent, &Counters::strategy_io_node};
  for (std::size_t i = 0; i < by_strategy.size(); ++i)
    if (counters.*by_strategy[i] != 0) event.strategy = static_cast<std::uint8_t>(i);
  for (std::size_t i = 0; i < counters.decided.size(); ++i)
    if (counters.decided[i] != 0) event.reason = static_cast<std::uint8_t>(i);
}

// What the counters of one call tell about it.
void describe_call(TraceEvent& event, const Counters& counters) {
  const auto us = [](std::uint64_t ns) { return static_cast<std::uint32_t>(ns / 1000); };
  event.pieces = static_cast<std::uint32_t>(counters.file_pieces);
  event.wait_us = us(counters.wait_ns);
  event.disk_us = us(counters.disk_ns);
  event.exchange_us = us(counters.exchange_ns + counters.gather_ns + counters.plan_ns);
}

void set_range(TraceEvent& event, const Slice& file) {
  if (file.len_bytes == 0) return;
  const Bounds bounds = bounds_of(file);
  event.offset = bounds.lowest;
  event.end = bounds.highest;
}

// Showing a call costs 3 % of one that moves 4 KiB.
constexpr std::uint64_t shown_from_bytes = 32768;

}  // namespace

[[gnu::always_inline]] inline Result<std::uint64_t> JointFile::move(Direction direction,
                                                                    const Transfer& transfer) {
  const CallCode code = place_of(direction, false, &transfer).code;
  const Doing now(code, &shown_, transfer.file.len_bytes >= shown_from_bytes);
  const Traced traced = Traced::short_call(transfer.tracing);
  Counters counters;
  ++(direction == Direction::write ? counters.writes : counters.reads);
  if (counters_.wanted() || traced.on()) counters.file_pieces += estimate_pieces(transfer.file);
  const auto moved = direction == Direction::write ? own_.write(transfer, counters)
                                                   : own_.read(transfer, counters);
  if (moved)
    (direction == Direction::write ? counters.bytes_written : counters.bytes_read) += *moved;
  counters_.add(counters);
  note_moved(kind_of(code), direction, moved.value_or(0));
  if (traced.on()) trace(traced, direction, &transfer, counters, moved);
  return moved;
}

[[gnu::noinline]] void JointFile::trace(const Traced& traced, Direction direction,
                                        const Transfer* transfer, const Counters& counters,
                                        const Result<std::uint64_t>& moved) {
  TraceEvent event = plain_event(trace_file_);
  if (transfer != nullptr) set_range(event, transfer->file);
  describe_call(event, counters);
  event.bytes = moved.value_or(0);
  event.failed = moved ? 0 : 1;
  const bool together = counters.collective_writes + counters.collective_reads > 0;
  if (together) describe_choice(event, counters);
  traced.end(place_of(direction, together, transfer), event);
}

Result<std::uint64_t> JointFile::write(const Transfer& transfer) {
  return move(Direction::write, transfer);
}

Result<std::uint64_t> JointFile::read(const Transfer& transfer) {
  return move(Direction::read, transfer);
}

Result<std::uint64_t> JointFile::move_contiguous(const ContiguousPiece& piece,
                                                 const CallPlace& place) {
  const Doing now(place.code, &shown_, piece.memory.size() >= shown_from_bytes);
  const Traced traced = Traced::short_call(Tracing::as_now);
  auto moved = own_.move_contiguous(piece);
  note_moved(kind_of(place.code), piece.direction, moved.value_or(0));
  if (traced.on()) [[unlikely]]
    trace(traced, piece, place, moved);
  return moved;
}

[[gnu::noinline]] void JointFile::trace(const Traced& traced, const ContiguousPiece& piece,
                                        const CallPlace& place,
                                        const Result<std::uint64_t>& moved) {
  const std::int64_t begin = piece.begin.value;
  const std::int64_t end = begin + as_signed(piece.memory.size());
  const std::uint64_t bytes = moved.value_or(0);
  if (!trace::room().is_much()) [[likely]] {
    trace::end({.place = place, .file = trace_file_, .bytes = bytes, .offset = begin, .end = end},
               traced.times(), !moved);
    return;
  }
  traced.end_with(place, bytes, [&](TraceEvent& event) {
    event = plain_event(trace_file_);
    event.pieces = 1;
    event.offset = begin;
    event.end = end;
    event.bytes = bytes;
    event.failed = moved ? 0 : 1;
  });
}

Status JointFile::flush_together() {
  if (caches_ != Caches::apart || !request_.mode.write) return {};
  const Result<std::uint64_t> mine = own_.any_pending() ? 1 : 0;
  SHIMA_TRY_ASSIGN(const std::uint64_t any, combine_values<std::bit_or<>{}>(*channel_, mine));
  if (any == 0) return {};
  // All members have come: the rest waits for none of their programs.
  return own_.flush_by([&](const Result<Transfer>& pending) {
    Counters counters;
    return status_of(move_together(Direction::write, pending, counters));
  });
}

// Adds what a digest holds besides the access itself.
void JointFile::complete(Digest& digest, std::uint64_t more_rounds) const {
  digest.more_rounds = more_rounds;
  digest.last_ns = last_ns_;
  digest.staged_bytes = channel_->staging().moved_bytes();
  if (io_nodes_ == 0) return;
  // Members may reach the subfiles in different ways.
  digest.io_nodes = io_nodes_;
  digest.call_id = random_number();
}

bool JointFile::seems_cached(const Bounds& bounds) {
  return file_.cached(FileOffset{bounds.lowest}) && file_.cached(FileOffset{bounds.highest - 1});
}

// A write to pages that are in the cache, or beyond the end of the file, reads nothing from the
// disk. One in pieces may be combined with other members' writes, and wait for them.
bool JointFile::moves_at_once(Direction direction, const Transfer& transfer) {
  constexpr std::int64_t most_bytes = 64 * 1024;
  if (transfer.file.len_bytes == 0 || transfer.device || atomic_ || caches_ == Caches::apart)
    return false;
  const Bounds bounds = bounds_of(transfer.file);
  const std::int64_t span_bytes = bounds.highest - bounds.lowest;
  if (direction == Direction::write &&
      (span_bytes != as_signed(transfer.file.len_bytes) || !file_.writes_to_cache()))
    return false;
  return span_bytes <= most_bytes && seems_cached(bounds);
}

Result<std::uint64_t> JointFile::move_all(Direction direction, const Result<Transfer>& transfer) {
  const Transfer* const known = transfer ? &*transfer : nullptr;
  const CallCode code = place_of(direction, true, known).code;
  const Doing now(code, &shown_);
  const Traced traced(known != nullptr ? known->tracing : Tracing::as_now);
  Counters counters;
  const Status flushed = flush_together();
  const auto moved = flushed ? move_together(direction, transfer, counters)
                             : Result<std::uint64_t>(std::unexpected(flushed.error()));
  note_moved(kind_of(code), direction, moved.value_or(0));
  if (traced.on()) trace(traced, direction, known, counters, moved);
  return moved;
}

// If each member moves its own bytes in any case, the transfer is one piece: device memory is then
// staged in OwnAccess::move, inside the lock of atomic mode.
Result<std::uint64_t> JointFile::move_together(Direction direction,
                                               const Result<Transfer>& transfer,
                                               Counters& counters) {
  ++(direction == Direction::write ? counters.collective_writes : counters.collective_reads);
  const bool moves_own = tuning_for(direction).owners_move();
  TransferPieces pieces(device_queues_, transfer,
                        {.direction = direction,
                         .staged = !moves_own,
                         .buffer_bytes = request_.hints.shima_device_buffer_size});
  Result<CollectiveResult> round;
  do {
    const Result<Transfer> piece = caught([&] { return pieces.next(); });
    round = move_round(direction, piece, pieces.more(), counters);
    if (round) pieces.moved(round->len_bytes);
  } while (round && round->more_rounds > 0);
  if (round)
    (direction == Direction::write ? counters.bytes_written : counters.bytes_read) +=
        pieces.total_moved();
  counters_.add(counters);
  if (!round) return std::unexpected(round.error());
  return pieces.total_moved();
}

Result<CollectiveResult> JointFile::move_round(Direction direction, const Result<Transfer>& piece,
                                               std::uint64_t more_rounds, Counters& counters) {
  if (piece && leaves_write(direction, piece->file)) {
    const auto packed = caught([&]() -> Result<std::uint64_t> {
      pack_small_write(piece->file, piece->memory, left_);
      return piece->file.len_bytes;
    });
    ++counters.small_writes;
    return bring_nothing(direction, *piece, {packed, left_, more_rounds}, counters);
  }
  if (piece && needs_no_plan(direction, piece->file)) {
    const auto own = caught([&] { return own_.move(direction, *piece, counters); });
    return bring_nothing(direction, *piece, {own, {}, more_rounds}, counters);
  }
  auto access = caught([&] { return access_of(direction, piece, more_rounds); });
  const bool has_data = access && access->post.len_bytes > 0;
  if (access) {
    counters.file_pieces += access->post.file_pieces;
    counters.memory_pieces += access->post.memory_pieces;
  }
  const CollectiveCall call = call_of(direction, counters);
  CollectiveTransfer transfer(call);
  SHIMA_TRY(transfer.start(std::move(access)));
  Result<std::uint64_t> own = 0;
  if (transfer.is_own_io() && has_data)
    own = caught([&] { return own_.move(direction, *piece, counters); });
  auto result = transfer.finish(own);
  if (result) last_ns_ = result->duration_ns;
  return result;
}

bool JointFile::is_small_write_here(Direction direction, const Slice& file) const {
  return direction == Direction::write && channel_->size() > 1 && write_tuning_.is_open() &&
         caches_ == Caches::one && !request_.hints.direct_write &&
         is_small_write(file, in_one_space());
}

// A small write is left for one member of the node to make.
bool JointFile::leaves_write(Direction direction, const Slice& file) const {
  return channel_->near_ranks().size() > 1 && is_small_write_here(direction, file);
}

// A member moves a few bytes before it meets the others, as the chooser's row `few_bytes` says, and
// small writes for which there is no other member on its node. The call needs no second meeting
// unless others have more to do.
bool JointFile::needs_no_plan(Direction direction, const Slice& file) const {
  const Tuning& tuning = tuning_for(direction);
  if (caches_ == Caches::apart || (!tuning.owners_move() && !tuning.is_open())) return false;
  if (file.len_bytes == 0 || !are_few(file.len_bytes, 1)) return false;
  if (estimate_pieces(file) <= 1 || is_small_write_here(direction, file)) return true;
  return direction == Direction::read && caches_ == Caches::one && !request_.hints.direct_read &&
         are_close(bounds_of(file), estimate_pieces(file), in_one_space());
}

// A member that has moved its bytes, or leaves them, meets the others.
Result<CollectiveResult> JointFile::bring_nothing(Direction direction, const Transfer& piece,
                                                  const MovedBefore& moved, Counters& counters) {
  counters.file_pieces += estimate_pieces(piece.file);
  counters.memory_pieces += estimate_pieces(piece.memory);
  Result<MemberAccess> rest;
  complete(rest->digest, moved.more_rounds);
  if (!moved.len_bytes) rest = std::unexpected(moved.len_bytes.error());
  CollectiveCall call = call_of(direction, counters);
  call.has_moved_own = true;
  call.left = moved.left;
  CollectiveTransfer transfer(call);
  SHIMA_TRY(transfer.start(std::move(rest)));
  SHIMA_TRY_ASSIGN(CollectiveResult result, transfer.finish(0));
  last_ns_ = result.duration_ns;
  result.len_bytes = *moved.len_bytes;
  return result;
}

CollectiveCall JointFile::call_of(Direction direction, Counters& counters) {
  return {.direction = direction,
          .channel = *channel_,
          .file = file_,
          .counters = counters,
          .tuning = tuning_for(direction),
          .posts = posts_,
          .caches = caches_,
          .has_moved_own = false,
          .disk = disk_,
          .history = history_,
          .timed = counters_.wanted() || has_trace()};
}

Result<MemberAccess> JointFile::access_of(Direction direction, const Result<Transfer>& transfer,
                                          std::uint64_t more_rounds) {
  SHIMA_TRY(status_of(transfer));
  MemberAccess access{.post = make_post(transfer->file, transfer->memory), .digest = {}};
  Digest& digest = access.digest = digest_of(access.post);
  complete(digest, more_rounds);
  if (access.post.len_bytes == 0) return access;
  const Hints& hints = request_.hints;
  const bool is_write = direction == Direction::write;
  digest.direct = (is_write ? hints.direct_write : hints.direct_read) ? 1 : 0;
  digest.cached = !is_write && seems_cached(access.post.bounds) ? 1 : 0;
  return access;
}

}  // namespace shima
