#include "store/striped/logical_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>

#include "store/striped/master_store.h"
#include "store/striped/range_lock.h"
#include "store/subfile/pieces.h"
#include "store/target/directory_lock.h"
#include "store/target/paths.h"

namespace shima {
namespace {

// Below the bytes that file systems with close-to-open consistency need locks for, and beyond all
// others.
constexpr FileOffset append_byte{(std::int64_t{1} << 62) - 1};
constexpr FileRange lock_of_appends{append_byte, {append_byte.value + 1}};

// Calls move(extent, pieces) for the part of the pieces in each subfile, until a call moves fewer
// bytes than given; returns the sum.
template <class Move>
[[gnu::noinline]] Result<std::uint64_t> move_in_turn(const Layout& layout, FileOffset offset,
                                                     std::span<const iovec> pieces, Move move) {
  std::uint64_t left = bytes_in(pieces);
  std::uint64_t moved = 0;
  PieceCursor cursor(pieces);
  while (left > 0) {
    const Extent extent = layout.locate(offset + as_signed(moved), left);
    const std::vector<iovec> part = cursor.take(extent.len_bytes);
    SHIMA_TRY_ASSIGN(const std::uint64_t n, move(extent, std::span<const iovec>(part)));
    moved += n;
    if (n < extent.len_bytes) break;
    left -= n;
  }
  return moved;
}

// The same, without an allocation if all are in one subfile. Part of its callers: see
// subfile/posix_subfile.cpp.
template <class Move>
[[gnu::always_inline]] inline Result<std::uint64_t> move_by_extent(const Layout& layout,
                                                                   FileOffset offset,
                                                                   std::span<const iovec> pieces,
                                                                   Move move) {
  const std::uint64_t len_bytes = bytes_in(pieces);
  const Extent extent = layout.locate(offset, len_bytes);
  if (extent.len_bytes == len_bytes) return move(extent, pieces);
  return move_in_turn(layout, offset, pieces, move);
}

std::uint64_t sum_of(std::span<const ApartRun> runs) {
  std::uint64_t sum = 0;
  for (const ApartRun& run : runs) sum += run.len_bytes;
  return sum;
}

// Runs of the logical file, for each subfile.
struct Dealt {
  std::vector<std::vector<ApartRun>> runs_of;
  std::deque<std::vector<iovec>> cut;  // the pieces of runs that span several subfiles
};

Dealt deal(std::span<const LogicalRun> runs, const Layout& layout, std::size_t subfiles) {
  Dealt dealt;
  dealt.runs_of.resize(subfiles);
  if (subfiles == 1) dealt.runs_of.front().reserve(runs.size());
  for (const LogicalRun& run : runs) {
    PieceCursor cursor(run.pieces);
    for (std::uint64_t done = 0; done < run.len_bytes;) {
      const Extent extent = layout.locate(run.begin + as_signed(done), run.len_bytes - done);
      const bool whole = extent.len_bytes == run.len_bytes;
      if (!whole) dealt.cut.push_back(cursor.take(extent.len_bytes));
      dealt.runs_of[static_cast<std::size_t>(extent.subfile)].push_back(
          {extent.begin, whole ? run.pieces : std::span<const iovec>(dealt.cut.back()),
           extent.len_bytes});
      done += extent.len_bytes;
    }
  }
  return dealt;
}

}  // namespace

Result<LogicalFile> LogicalFile::open_parts(const MasterFile& master, const LogicalOpen& request,
                                            const MasterFile& standing) {
  SHIMA_TRY_ASSIGN(auto subfiles, open_subfiles(master,
                                                {.path = request.path,
                                                 .read = request.read,
                                                 .write = request.write,
                                                 .direct_read = request.direct_read,
                                                 .direct_write = request.direct_write,
                                                 .close_to_open = request.close_to_open},
                                                standing));
  SHIMA_TRY_ASSIGN(Layout layout, layout_of(master));
  return LogicalFile(request.path, std::move(layout), master, std::move(subfiles));
}

// The file may be renamed or restriped after its master file is read and before its subfiles are
// opened: then the opened subfiles may be about to be removed, or not exist, and the master file
// has changed. Or the path was empty, and a striped file appears before a plain one is created.
Result<LogicalFile> LogicalFile::open(const LogicalOpen& request) {
  if (request.exclusive) return open_plain(request);
  SHIMA_TRY_ASSIGN(auto master, read_openable_master(request.path));
  constexpr int most_attempts = 10;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    auto file = master ? open_parts(*master, request, *master) : open_plain(request);
    SHIMA_TRY_ASSIGN(auto after, read_openable_master(request.path));
    const bool same = after ? master && after->id == master->id : !master;
    if (same && (file || !master || attempt > 0)) return file;
    master = std::move(after);
  }
  return fail(Code::file_in_use, request.path + " is replaced repeatedly");
}

Result<LogicalFile> LogicalFile::open_plain(const LogicalOpen& request) {
  FileTree& tree = tree_at(request.path);
  SHIMA_TRY_ASSIGN(auto whole, tree.open({.path = request.path,
                                          .read = request.read,
                                          .write = request.write,
                                          .create = request.create,
                                          .exclusive = request.exclusive,
                                          .direct_read = request.direct_read,
                                          .direct_write = request.direct_write,
                                          .permissions = request.permissions,
                                          .close_to_open = request.close_to_open}));
  return around(request.path, std::move(whole));
}

LogicalFile LogicalFile::around(const std::string& path, std::unique_ptr<Subfile> whole) {
  std::vector<std::unique_ptr<Subfile>> subfiles;
  subfiles.push_back(std::move(whole));
  return LogicalFile(path, Layout::plain(), {}, std::move(subfiles));
}

// A file system may be mounted twice, as two devices: subfiles of one id that have one inode number
// are taken for one.
Result<bool> LogicalFile::shares_subfiles_with(const LogicalFile& other) const {
  const bool same_id = master_ && other.master_ && master_->id == other.master_->id;
  for (const auto& mine : subfiles_) {
    SHIMA_TRY_ASSIGN(const FileIdentity own, mine->identity());
    for (const auto& theirs : other.subfiles_) {
      SHIMA_TRY_ASSIGN(const FileIdentity found, theirs->identity());
      if (own == found || (same_id && own.inode == found.inode)) return true;
    }
  }
  return false;
}

Result<bool> LogicalFile::belongs_to(uid_t user) const {
  for (const auto& each : subfiles_) {
    SHIMA_TRY_ASSIGN(const uid_t owner, each->owner());
    if (owner != user) return false;
  }
  return true;
}

Status LogicalFile::write(FileOffset offset, std::span<const iovec> pieces) {
  if (move_together(offset, pieces, true)) return {};
  const auto move = [&] [[gnu::always_inline]] (
                        const Extent& extent,
                        std::span<const iovec> part) -> Result<std::uint64_t> {
    SHIMA_TRY(write_pieces_in(extent.subfile, extent.begin, part, extent.len_bytes));
    return extent.len_bytes;
  };
  const auto moved = move_by_extent(layout_, offset, pieces, move);
  if (!moved) return std::unexpected(moved.error());
  return {};
}

Result<std::uint64_t> LogicalFile::read(FileOffset offset, std::span<const iovec> pieces) {
  if (move_together(offset, pieces, false)) return bytes_in(pieces);
  const auto move = [&] [[gnu::always_inline]] (const Extent& extent, std::span<const iovec> part) {
    return read_pieces_in(extent.subfile, extent.begin, part);
  };
  return move_by_extent(layout_, offset, pieces, move);
}

// An access that spans far subfiles: all at once, instead of one round trip after the other. False
// if it must be done in the usual way, also for the error or the end of the file.
bool LogicalFile::move_together(FileOffset offset, std::span<const iovec> pieces, bool writing) {
  const auto far = [](const auto& each) { return each->is_far(); };
  if (subfiles_.size() == 1 || !std::ranges::all_of(subfiles_, far)) return false;
  const std::uint64_t len_bytes = bytes_in(pieces);
  if (layout_.locate(offset, len_bytes).len_bytes == len_bytes) return false;
  const LogicalRun all{offset, pieces, len_bytes};
  return move_apart(std::span(&all, 1), writing);
}

bool LogicalFile::maps_writes() {
  return may_map_ &&
         std::ranges::all_of(subfiles_, [](const auto& each) { return each->maps_writes(); });
}

bool LogicalFile::write_mapped(std::span<const LogicalRun> runs) {
  if (!may_map_) return false;
  const Dealt dealt = deal(runs, layout_, subfiles_.size());
  for (std::size_t i = 0; i < dealt.runs_of.size(); ++i)
    if (!dealt.runs_of[i].empty() && !subfiles_[i]->write_mapped(dealt.runs_of[i])) return false;
  for (std::size_t i = 0; i < dealt.runs_of.size(); ++i) tally(i, dealt.runs_of[i], true);
  return true;
}

bool LogicalFile::write_mapped_in(int index, std::span<const ApartRun> runs) {
  if (!may_map_ || !subfile(index).write_mapped(runs)) return false;
  tally(static_cast<std::size_t>(index), runs, true);
  return true;
}

bool LogicalFile::move_apart(std::span<const LogicalRun> runs, bool writing) {
  const Dealt dealt = deal(runs, layout_, subfiles_.size());
  const auto& runs_of = dealt.runs_of;
  const auto far = ask_together(subfiles_.size(), [&](std::size_t i) {
    return runs_of[i].empty() ? nullptr : subfiles_[i]->begin_move(runs_of[i], writing);
  });
  for (std::size_t i = 0; i < runs_of.size(); ++i) {
    if (runs_of[i].empty()) continue;
    const auto wanted = sum_of(runs_of[i]);
    const bool whole = far[i] ? far[i]->result().value_or(wanted - 1) == wanted
                              : subfiles_[i]->move_apart(runs_of[i], writing);
    if (!whole) return false;
    tally(i, runs_of[i], writing);
  }
  return true;
}

void LogicalFile::tally(std::size_t subfile, std::span<const ApartRun> runs, bool writing) {
  for (const ApartRun& run : runs)
    writing ? tallies_.wrote(subfile, run.len_bytes) : tallies_.read(subfile, run.len_bytes);
}

Status LogicalFile::write_in(int subfile, TargetOffset offset, const void* data,
                             std::uint64_t len_bytes) {
  const iovec piece{const_cast<void*>(data), len_bytes};
  return write_pieces_in(subfile, offset, std::span<const iovec>(&piece, 1), len_bytes);
}

Status LogicalFile::write_in(int subfile, TargetOffset offset, std::span<const iovec> pieces) {
  return write_pieces_in(subfile, offset, pieces, bytes_in(pieces));
}

[[gnu::always_inline]] inline Status LogicalFile::write_pieces_in(int index, TargetOffset offset,
                                                                  std::span<const iovec> pieces,
                                                                  std::uint64_t len_bytes) {
  SHIMA_TRY(subfile(index).write(offset, pieces));
  tallies_.wrote(static_cast<std::size_t>(index), len_bytes);
  return {};
}

Result<std::uint64_t> LogicalFile::read_in(int subfile, TargetOffset offset, void* data,
                                           std::uint64_t len_bytes) {
  const iovec piece{data, len_bytes};
  return read_in(subfile, offset, std::span<const iovec>(&piece, 1));
}

Result<std::uint64_t> LogicalFile::read_in(int subfile, TargetOffset offset,
                                           std::span<const iovec> pieces) {
  return read_pieces_in(subfile, offset, pieces);
}

// A subfile that ends early ends the file only if no other subfile continues it.
[[gnu::always_inline]] inline Result<std::uint64_t> LogicalFile::read_pieces_in(
    int index, TargetOffset offset, std::span<const iovec> pieces) {
  SHIMA_TRY_ASSIGN(const std::uint64_t found, subfile(index).read(offset, pieces));
  tallies_.read(static_cast<std::size_t>(index), found);
  const std::uint64_t wanted = bytes_in(pieces);
  if (found == wanted || subfiles_.size() == 1) return found;
  SHIMA_TRY_ASSIGN(const FileOffset end, size());
  const std::int64_t left = layout_.below(index, end) - (offset + as_signed(found));
  const std::uint64_t zeros =
      std::min(wanted - found, as_unsigned(std::max<std::int64_t>(left, 0)));
  PieceCursor cursor(pieces);
  cursor.skip(found);
  for (const iovec& piece : cursor.take(zeros)) std::memset(piece.iov_base, 0, piece.iov_len);
  return found + zeros;
}

std::unique_ptr<FileView> LogicalFile::view_in(int index, TargetRange range, const Wanted& wanted) {
  auto view = subfile(index).view(range);
  if (view) tallies_.read(static_cast<std::size_t>(index), wanted.len_bytes, wanted.runs);
  return view;
}

Result<FileOffset> LogicalFile::end_seen_at(int subfile, TargetOffset at) {
  SHIMA_TRY_ASSIGN(const FileOffset end, size());
  return std::min(end, layout_.run_at(subfile, at).begin);
}

bool LogicalFile::cached(FileOffset offset) {
  const Extent extent = layout_.locate(offset, 1);
  return subfile(extent.subfile).cached(extent.begin);
}

bool LogicalFile::writes_to_cache() const {
  return std::ranges::all_of(subfiles_, [](const auto& each) { return each->writes_to_cache(); });
}

bool LogicalFile::is_far() const {
  return std::ranges::any_of(subfiles_, [](const auto& each) { return each->is_far(); });
}

std::uint64_t LogicalFile::node_identity() const {
  std::uint64_t all = 0;
  for (const auto& each : subfiles_) {
    const std::uint64_t one = each->node_identity();
    if (one == 0) return 0;
    all = std::rotl(all, 1) ^ one;
  }
  return all;
}

void LogicalFile::will_need(FileRange range) {
  for (int i = 0; i < layout_.subfile_count(); ++i) {
    const TargetRange part{layout_.below(i, range.begin), layout_.below(i, range.end)};
    if (!part.empty()) subfile(i).will_need(part);
  }
}

Result<std::vector<std::uint64_t>> LogicalFile::subfile_sizes() {
  const auto far = ask_together(
      subfiles_.size(), [&](std::size_t i) { return subfiles_[i]->begin(Subfile::FarOp::size); });
  std::vector<std::uint64_t> sizes;
  for (std::size_t i = 0; i < subfiles_.size(); ++i) {
    SHIMA_TRY_ASSIGN(const std::uint64_t bytes, far[i] ? far[i]->result() : subfiles_[i]->size());
    sizes.push_back(bytes);
  }
  return sizes;
}

Result<FileOffset> LogicalFile::size() {
  SHIMA_TRY_ASSIGN(const auto sizes, subfile_sizes());
  return layout_.end_of_file(sizes);
}

Result<std::optional<FileOffset>> LogicalFile::next_data(FileOffset from) {
  std::optional<FileOffset> next;
  for (int i = 0; i < layout_.subfile_count(); ++i) {
    const TargetOffset begin = layout_.below(i, from);
    SHIMA_TRY_ASSIGN(const auto found, subfile(i).next_data(begin));
    if (!found || *found >= layout_.capacity(i)) continue;
    const FileOffset at = std::max(from, layout_.run_at(i, *found).begin);
    next = next ? std::min(*next, at) : at;
  }
  return next;
}

Status LogicalFile::truncate(FileOffset size) {
  if (!master_) return subfile(0).truncate(as_unsigned(size.value));
  master_synced_ = false;  // the new size is to be made durable, too
  const Status status = truncate_striped(path_, as_unsigned(size.value), &master_->id);
  const bool has_lost_name = !status && (status.error().code == Code::no_such_file ||
                                         status.error().code == Code::file_in_use);
  return has_lost_name ? truncate_unnamed(size) : status;
}

Status LogicalFile::truncate_unnamed(FileOffset size) {
  for (int i = 0; i < layout_.subfile_count(); ++i)
    SHIMA_TRY(subfile(i).truncate(as_unsigned(layout_.below(i, size).value)));
  return {};
}

Status LogicalFile::preallocate(FileOffset size) {
  for (int i = 0; i < layout_.subfile_count(); ++i)
    SHIMA_TRY(subfile(i).preallocate(as_unsigned(layout_.below(i, size).value)));
  return {};
}

Status LogicalFile::sync() {
  if (master_ && !master_synced_) {
    // A name that the file has lost meanwhile need not be synced.
    const Status synced = sync_master(*master_, path_);
    if (!synced && synced.error().code != Code::no_such_file) return synced;
  }
  master_synced_ = true;
  const auto far = ask_together(
      subfiles_.size(), [&](std::size_t i) { return subfiles_[i]->begin(Subfile::FarOp::sync); });
  for (std::size_t i = 0; i < subfiles_.size(); ++i)
    SHIMA_TRY(far[i] ? status_of(far[i]->result()) : subfiles_[i]->sync());
  return {};
}

Status LogicalFile::sync_own() {
  // A striped file's subfiles are created and truncated through other descriptors.
  if (is_far() || (master_ && !master_synced_)) return sync();
  for (const auto& each : subfiles_)
    if (!each->is_synced()) SHIMA_TRY(each->sync());
  return {};
}

void LogicalFile::note_changed() {
  for (const auto& each : subfiles_) each->note_changed();
}

Status LogicalFile::publish() {
  for (const auto& each : subfiles_) SHIMA_TRY(each->publish());
  return {};
}

void LogicalFile::look_again() {
  for (const auto& each : subfiles_) each->look_again();
}

bool LogicalFile::close_to_open() const {
  return std::ranges::any_of(subfiles_, [](const auto& each) { return each->close_to_open(); });
}

std::uint64_t LogicalFile::local_identity() const {
  std::uint64_t all = 0;
  for (const auto& each : subfiles_) {
    const std::uint64_t one = each->local_identity();
    if (one == 0) return 0;
    all = std::rotl(all, 1) ^ one;
  }
  return all;
}

// The locks of one subfile cover the whole file.
Status LogicalFile::lock(FileRange range, bool exclusive) {
  return subfile(0).lock(TargetOffset{range.begin.value}, range.len_bytes(), exclusive);
}
Result<bool> LogicalFile::try_lock(FileRange range, bool exclusive) {
  return subfile(0).try_lock(TargetOffset{range.begin.value}, range.len_bytes(), exclusive);
}
void LogicalFile::unlock(FileRange range) {
  subfile(0).unlock(TargetOffset{range.begin.value}, range.len_bytes());
}

Status LogicalFile::append(const void* data, std::uint64_t len_bytes, Turn& turn) {
  const auto until = Clock::now() + lock_timeout();
  const auto own = turn.take_until(until);
  if (!own) return append_timed_out();
  const auto held = RangeLock::take_until(until, *this, lock_of_appends, true);
  if (!held && held.error().code == Code::file_in_use) return append_timed_out();
  if (!held && is_far()) return std::unexpected(held.error());
  SHIMA_TRY_ASSIGN(const FileOffset end, size());
  return write(end, data, len_bytes);
}

Status LogicalFile::append_timed_out() {
  const TargetRange lock{{lock_of_appends.begin.value}, {lock_of_appends.end.value}};
  return fail(Code::timed_out,
              fmt::format("appending to {}: {} has not ended an append for {} s; nothing was "
                          "written (SHIMA_LOCK_TIMEOUT sets how many seconds to wait)",
                          path_, subfile(0).lock_holder(lock.begin, lock.len_bytes()),
                          lock_timeout().count()),
              ETIMEDOUT);
}

Status LogicalFile::close() {
  const auto far = ask_together(
      subfiles_.size(), [&](std::size_t i) { return subfiles_[i]->begin(Subfile::FarOp::close); });
  Status status;
  for (std::size_t i = 0; i < subfiles_.size(); ++i) {
    const Status closed = far[i] ? status_of(far[i]->result()) : subfiles_[i]->close();
    if (status) status = closed;
  }
  return status;
}

}  // namespace shima
