#include "file/joint_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fault_point.h"
#include "collective/combine.h"
#include "collective/run.h"
#include "file/agreement.h"
#include "file/independent.h"
#include "file/striping.h"
#include "file/transfer_pieces.h"
#include "observe/stats.h"
#include "store/master_store.h"
#include "store/range_lock.h"
#include "store/text_file.h"

namespace shima {
namespace {

// What a member brings when hints may change.
struct HintsPost {
  std::uint64_t code = 0;  // why it cannot go on
  std::uint64_t same = 0;
  std::uint64_t changes = 0;
};

Result<std::pair<std::int64_t, std::int64_t>> number_in(const Result<FileOffset>& offset) {
  if (!offset) return std::unexpected(offset.error());
  return std::pair<std::int64_t, std::int64_t>(offset->value, 0);
}

Tuning::Force force_of(Toggle collective_buffering, Movement movement) {
  if (collective_buffering == Toggle::disable) return Tuning::Force::independent;
  switch (movement) {
    case Movement::single_copy:
      return Tuning::Force::single_copy;
    case Movement::pull:
      return Tuning::Force::pull;
    case Movement::pack:
      return Tuning::Force::pack;
    case Movement::message:
      return Tuning::Force::message;
    case Movement::automatic:
      break;
  }
  return Tuning::Force::automatic;
}

}  // namespace

JointFile::JointFile(std::unique_ptr<Channel> channel, LogicalFile file, OpenRequest request,
                     Facts facts)
    : channel_(std::move(channel)),
      file_(std::move(file)),
      request_(std::move(request)),
      removable_(request_.mode.delete_on_close ? name_from_anywhere(request_.path) : ""),
      facts_(facts),
      read_ahead_(file_) {
  if (facts_.wants_stats) file_.start_tallies();
  tune();
}

Status JointFile::set_size(const Result<FileOffset>& size) {
  return resize("setting the size of", size, [&] { return file_.truncate(*size); });
}

Status JointFile::preallocate(const Result<FileOffset>& size) {
  return resize("preallocating", size, [&] { return file_.preallocate(*size); });
}

// Its own writes belong to a member's file, wherever they are.
Result<FileOffset> JointFile::size() {
  SHIMA_TRY_ASSIGN(const FileOffset stored, file_.size());
  const std::lock_guard lock(pending_mutex_);
  return std::max(stored, FileOffset{pending_.end()});
}

Status JointFile::sync() {
  const Status flushed = flush_together();
  const Status synced = flushed ? file_.sync() : flushed;
  fault_point(FaultPhase::sync);
  SHIMA_TRY(agree_on(*channel_, synced, "syncing " + request_.path));
  file_.look_again();
  return {};
}

void JointFile::tune() {
  const Hints& hints = request_.hints;
  write_tuning_ = {force_of(hints.romio_cb_write, hints.shima_reach), hints.cb_nodes,
                   hints.cb_buffer_size};
  read_tuning_ = {force_of(hints.romio_cb_read, hints.shima_reach), hints.cb_nodes,
                  hints.cb_buffer_size};
  read_ahead_.enable(hints.shima_read_ahead != Toggle::disable && !hints.direct_read);
  // In atomic mode every member's access is a unit of its own.
  if (atomic_) write_tuning_.force = read_tuning_.force = Tuning::Force::independent;
}

// A view seldom brings new hints: then nothing but their sameness travels.
Status JointFile::set_hints(const Result<Hints>& hints, std::uint64_t same) {
  const bool changes = hints && *hints != request_.hints;
  HintsPost mine{hints ? 0U : static_cast<std::uint64_t>(hints.error().code), same,
                 changes ? 1U : 0U};
  fault_point(FaultPhase::view);
  SHIMA_TRY_ASSIGN(auto all, exchange_with_hints(*channel_, mine, changes ? *hints : Hints{}));
  const auto& posts = all.values;
  const auto worst = std::ranges::max_element(posts, {}, &HintsPost::code);
  const auto differs = [&](const HintsPost& post) { return post.same != posts.front().same; };
  if (worst->code == 0 && std::ranges::any_of(posts, differs))
    return fail(Code::not_same,
                fmt::format("{}: {}s gave different data representations, or etypes of different "
                            "extents",
                            request_.path, channel_->member_word()));
  if (worst->code == 0) {
    if (posts.front().changes == 0) return {};
    request_.hints = std::move(all.hints);
    tune();
    return {};
  }
  if (!hints && mine.code == worst->code) return std::unexpected(hints.error());
  return fail(static_cast<Code>(worst->code),
              fmt::format("{}: {} {} failed", request_.path, channel_->member_word(),
                          worst - posts.begin()));
}

Result<std::uint64_t> JointFile::move(Operation operation, const Transfer& transfer) {
  Counters counters;
  ++(operation == Operation::write ? counters.writes : counters.reads);
  if (facts_.wants_stats) counters.file_pieces += estimate_pieces(transfer.file);
  bool done = false;
  if (operation == Operation::write) {
    SHIMA_TRY_ASSIGN(done, keep(transfer));
    if (!done) {
      SHIMA_TRY_ASSIGN(done, combine(transfer, counters));
    }
  }
  const auto moved = done ? Result<std::uint64_t>(transfer.file.len_bytes)
                     : operation == Operation::write ? move_own(operation, transfer, counters)
                                                     : read_own(transfer, counters);
  if (moved)
    (operation == Operation::write ? counters.bytes_written : counters.bytes_read) += *moved;
  count(counters);
  return moved;
}

// Whether the write waits until all members write together.
Result<bool> JointFile::keep(const Transfer& transfer) {
  if (!facts_.caches_apart || atomic_ || transfer.file.len_bytes == 0) return false;
  const bool may_wait = !transfer.device && request_.hints.shima_combine != Toggle::disable &&
                        PendingWrites::worth_keeping(transfer.file);
  {
    const std::lock_guard lock(pending_mutex_);
    if (may_wait && pending_.keep(transfer)) return true;
    // Older bytes must not follow newer ones to the same place.
    if (!may_wait && !pending_.touches(bounds_of(transfer.file))) return false;
  }
  SHIMA_TRY(flush_alone());
  const std::lock_guard lock(pending_mutex_);
  return may_wait && pending_.keep(transfer);
}

// A member finds what it has written itself.
Result<std::uint64_t> JointFile::read_own(const Transfer& transfer, Counters& counters) {
  const Bounds bounds = bounds_of(transfer.file);
  const auto waits = [&](bool beyond) {
    const std::lock_guard lock(pending_mutex_);
    return beyond ? pending_.end() > bounds.lowest : pending_.touches(bounds);
  };
  if (waits(false)) SHIMA_TRY(flush_alone());
  const auto read = [&] { return move_own(Operation::read, transfer, counters); };
  const auto moved = read();
  if (!moved || *moved == transfer.file.len_bytes || !waits(true)) return moved;
  SHIMA_TRY(flush_alone());  // the file does not end where it seemed to
  return read();
}

Status JointFile::flush_alone() {
  PendingWrites::Batch batch;
  {
    const std::lock_guard lock(pending_mutex_);
    if (pending_.empty()) return {};
    batch = pending_.take();
  }
  Counters counters;
  const auto written = move_own(Operation::write, batch.transfer, counters);
  count(counters);
  return written ? Status{} : std::unexpected(written.error());
}

Status JointFile::flush_together() {
  if (!facts_.caches_apart || !request_.mode.write) return {};
  PendingWrites::Batch batch;
  {
    const std::lock_guard lock(pending_mutex_);
    batch = pending_.take();
  }
  SHIMA_TRY_ASSIGN(const auto lens, exchange_values(*channel_, std::uint64_t{batch.data.size()}));
  if (std::ranges::all_of(lens, [](std::uint64_t len) { return len == 0; })) return {};
  const auto written = move_together(Operation::write, batch.transfer);
  return written ? Status{} : std::unexpected(written.error());
}

// Whether the write was done together with those of other members of the node.
Result<bool> JointFile::combine(const Transfer& transfer, Counters& counters) {
  if (atomic_ || facts_.caches_apart || transfer.device || transfer.file.pattern.is_contiguous() ||
      channel_->errands() == nullptr || request_.hints.shima_combine == Toggle::disable)
    return false;
  const Post post = make_post(transfer.file, transfer.memory);
  const std::unique_lock alone(
      combining_, std::try_to_lock);  // one errand a member; other threads go their own way
  if (!alone || !worth_combining(post)) return false;
  const CombinedWrite write{*channel_, file_, counters, request_.hints.cb_buffer_size,
                            [&](const Slice& file, const Slice& memory) {
                              return move_own(Operation::write, {file, memory}, counters);
                            }};
  SHIMA_TRY_ASSIGN(const bool combined, write_combined(write, post));
  if (combined) ++counters.combined_writes;
  return combined;
}

Result<std::uint64_t> JointFile::move_own(Operation operation, const Transfer& transfer,
                                          Counters& counters) {
  if (!atomic_ || transfer.file.len_bytes == 0) return move_pieces(operation, transfer, counters);
  const std::lock_guard one_at_a_time(alone_);
  const Bounds bounds = bounds_of(transfer.file);
  SHIMA_TRY_ASSIGN(const auto held, RangeLock::take(file_, {{bounds.lowest}, {bounds.highest}},
                                                    operation == Operation::write));
  return move_pieces(operation, transfer, counters);
}

Result<std::uint64_t> JointFile::move_pieces(Operation operation, const Transfer& transfer,
                                             Counters& counters) {
  const auto move_piece = [&](const Transfer& piece) {
    const IndependentRequest request{operation,
                                     piece.file,
                                     piece.memory,
                                     request_.hints.ind_rd_buffer_size,
                                     request_.hints.romio_ds_read != Toggle::disable,
                                     request_.hints.shima_ring,
                                     facts_.cores_to_spare,
                                     facts_.wants_stats,
                                     &read_ahead_};
    return move_independently(request, file_, counters);
  };
  if (!transfer.device) return move_piece(transfer);
  const Result<Transfer> whole = transfer;
  TransferPieces pieces(
      device_queues_, whole,
      {.operation = operation, .buffer_bytes = request_.hints.shima_device_buffer_size});
  do {
    SHIMA_TRY_ASSIGN(const Transfer piece, pieces.next());
    SHIMA_TRY_ASSIGN(const std::uint64_t moved, move_piece(piece));
    pieces.moved(moved);
  } while (pieces.more() > 0);
  return pieces.total_moved();
}

bool JointFile::seems_cached(const Bounds& bounds) {
  return file_.cached(FileOffset{bounds.lowest}) && file_.cached(FileOffset{bounds.highest - 1});
}

Result<std::uint64_t> JointFile::move_all(Operation operation, const Result<Transfer>& transfer) {
  SHIMA_TRY(flush_together());
  return move_together(operation, transfer);
}

// Where each member moves its own bytes in any case it brings them whole, and device memory is
// staged below the lock of atomic mode.
Result<std::uint64_t> JointFile::move_together(Operation operation,
                                               const Result<Transfer>& transfer) {
  Counters counters;
  ++(operation == Operation::write ? counters.collective_writes : counters.collective_reads);
  const bool moves_own = tuning_for(operation).force == Tuning::Force::independent;
  TransferPieces pieces(device_queues_, transfer,
                        {.operation = operation,
                         .staged = !moves_own,
                         .buffer_bytes = request_.hints.shima_device_buffer_size});
  Result<CollectiveResult> round;
  do {
    const Result<Transfer> piece = caught([&] { return pieces.next(); });
    round = move_round(operation, piece, pieces.more(), counters);
    if (round) pieces.moved(round->len_bytes);
  } while (round && round->more_rounds > 0);
  if (round)
    (operation == Operation::write ? counters.bytes_written : counters.bytes_read) +=
        pieces.total_moved();
  count(counters);
  if (!round) return std::unexpected(round.error());
  return pieces.total_moved();
}

Result<CollectiveResult> JointFile::move_round(Operation operation, const Result<Transfer>& piece,
                                               std::uint64_t more_rounds, Counters& counters) {
  Post post;
  if (piece) post = make_post(piece->file, piece->memory);
  if (!piece) post.code = piece.error().code;
  post.more_rounds = more_rounds;
  const Hints& hints = request_.hints;
  post.direct = operation == Operation::write ? hints.direct_write : hints.direct_read;
  if (operation == Operation::read && post.len_bytes > 0) post.cached = seems_cached(post.bounds);
  counters.file_pieces += post.file_pieces;
  counters.memory_pieces += post.memory_pieces;
  const CollectiveCall call{operation,
                            *channel_,
                            file_,
                            counters,
                            tuning_for(operation),
                            facts_.caches_apart,
                            [&](const Slice& file, const Slice& memory) {
                              return move_own(operation, {file, memory, piece->device}, counters);
                            }};
  auto moved = run_collective(call, post);
  // This member's own words, unless another member's error is the one that all return.
  if (!piece && !moved && piece.error().code == moved.error().code)
    return std::unexpected(piece.error());
  return moved;
}

// Where members cache apart, nobody may write back later what was written before the change, and
// the first member must not act upon, nor the others keep, an older file.
Status JointFile::resize(const char* doing, const Result<FileOffset>& size,
                         const std::function<Status()>& action) {
  SHIMA_TRY(flush_together());
  auto wanted = number_in(size);
  if (const Status published = file_.publish(); wanted && !published)
    wanted = std::unexpected(published.error());
  file_.look_again();
  const Status status = first_member_does(doing, wanted, [&]() -> Status {
    SHIMA_TRY(action());
    return file_.publish();
  });
  file_.look_again();
  return status;
}

// All bring the same numbers, the first member acts, all learn how it went.
Status JointFile::first_member_does(const char* doing,
                                    const Result<std::pair<std::int64_t, std::int64_t>>& same,
                                    const std::function<Status()>& action) {
  struct Brought {
    std::uint64_t code;
    std::int64_t first;
    std::int64_t second;
  };
  const Brought mine{same ? 0U : static_cast<std::uint64_t>(same.error().code),
                     same ? same->first : 0, same ? same->second : 0};
  const auto all = exchange_values(*channel_, mine);
  fault_point(FaultPhase::size);
  const auto differs = [&](const Brought& other) {
    return other.first != mine.first || other.second != mine.second;
  };
  Status status;
  if (!all) {
    status = std::unexpected(all.error());
  } else if (!same) {
    status = std::unexpected(same.error());
  } else if (std::ranges::any_of(*all, [](const Brought& other) { return other.code != 0; })) {
    status = {};  // the member with the error reports it
  } else if (std::ranges::any_of(*all, differs)) {
    status = fail(Code::not_same, fmt::format("{} {}: {}s gave different values", doing,
                                              request_.path, channel_->member_word()));
  } else if (channel_->rank() == 0) {
    status = action();
  }
  return agree_on(*channel_, status, fmt::format("{} {}", doing, request_.path));
}

Result<std::int64_t> JointFile::claim_in_order(const Result<std::uint64_t>& len) {
  struct Claim {
    std::uint64_t code;
    std::int64_t bytes;  // how many; in the answer, from where
  };
  const auto claim_of = [](const auto& bytes) {
    return bytes ? Claim{0, static_cast<std::int64_t>(*bytes)}
                 : Claim{static_cast<std::uint64_t>(bytes.error().code), 0};
  };
  const Claim mine = claim_of(len);
  SHIMA_TRY_ASSIGN(const auto claims, exchange_values(*channel_, mine));
  const auto worst = std::ranges::max_element(claims, {}, &Claim::code);
  const auto failed = [&](std::uint64_t code, std::ptrdiff_t rank) {
    return fail(static_cast<Code>(code),
                fmt::format("{}: {} {} failed", request_.path, channel_->member_word(), rank));
  };
  if (!len && mine.code == worst->code) return std::unexpected(len.error());
  if (worst->code != 0) return failed(worst->code, worst - claims.begin());
  std::int64_t all = 0;
  std::int64_t before_mine = 0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (i == static_cast<std::size_t>(channel_->rank())) before_mine = all;
    if (__builtin_add_overflow(all, claims[i].bytes, &all))
      return fail(Code::bad_count, request_.path + ": the data of all exceed what a file holds");
  }
  // Only now have all come, so that nobody's earlier access at the pointer is still to be counted.
  Result<std::int64_t> begin = 0;
  if (channel_->rank() == 0) begin = shared_pointer()->advance(all);
  fault_point(FaultPhase::claim);
  SHIMA_TRY_ASSIGN(const auto answers, exchange_values(*channel_, claim_of(begin)));
  if (answers.front().code != 0) return failed(answers.front().code, 0);
  return answers.front().bytes + before_mine;
}

Status JointFile::set_atomicity(bool atomic) {
  SHIMA_TRY(flush_together());
  SHIMA_TRY(first_member_does("setting the atomicity of",
                              std::pair<std::int64_t, std::int64_t>(atomic, 0), [&]() -> Status {
                                if (!atomic || !facts_.caches_apart || !file_.locks_stay_on_node())
                                  return {};
                                return fail(Code::unsupported_operation,
                                            request_.path +
                                                ": atomic mode needs locks between nodes, and the "
                                                "NFS mount has none (nolock, local_lock)");
                              }));
  atomic_ = atomic;
  tune();
  return {};
}

void JointFile::report() {
  FileStats stats{.path = request_.path, .member_count = channel_->size()};
  const auto all = exchange_values(*channel_, counters_);
  if (!all) return;
  for (const Counters& counters : *all) stats.sum.add(counters);
  std::vector<std::string> targets{""};
  if (file_.master() != nullptr) targets = file_.master()->targets();
  const std::vector<SubfileTally> mine = file_.tallies();
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const auto theirs = exchange_values(*channel_, mine[i]);
    if (!theirs) return;
    stats.subfiles.push_back({targets[i], {}});
    for (const SubfileTally& tally : *theirs) stats.subfiles.back().tally += tally;
  }
  if (channel_->rank() != 0) return;
  stats.hints = effective(hints_in_effect());
  append_stats(stats);
}

Hints JointFile::hints_in_effect() const {
  Hints hints = request_.hints;
  if (hints.cb_nodes == 0) hints.cb_nodes = agent_count(channel_->members());
  hints.cb_buffer_size = window_size(hints.cb_buffer_size);
  if (hints.shima_device_buffer_size == 0)
    hints.shima_device_buffer_size = default_device_buffer_bytes;
  if (hints.ind_rd_buffer_size == 0) hints.ind_rd_buffer_size = default_sieve_bytes;
  if (file_.master() != nullptr) {
    describe_striping(*file_.master(), hints);
  } else {  // a plain file that was there before
    hints.shima_targets.clear();
    hints.shima_regions.clear();
  }
  return hints;
}

Status JointFile::close() {
  device_queues_.clear();
  const Status flushed = flush_together();
  Status status = file_.close();
  if (!flushed) status = flushed;
  if (facts_.wants_stats) report();
  fault_point(FaultPhase::close);
  status = agree_on(*channel_, status, "closing " + request_.path);
  if (!request_.mode.delete_on_close) return status;
  Status removed;
  if (channel_->rank() == 0) removed = remove_file(removable_);
  removed = agree_on(*channel_, removed, "removing " + request_.path);
  return status ? removed : status;
}

}  // namespace shima
