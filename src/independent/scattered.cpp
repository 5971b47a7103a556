#include "independent/scattered.h"

#include <limits.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fault_point.h"
#include "base/process/aside.h"
#include "pattern/copy.h"
#include "store/subfile/close_runs.h"

namespace shima {
namespace {

constexpr std::uint64_t few_pieces = 256;  // with fewer, a ring costs more than it saves
constexpr std::uint64_t large_piece_bytes = 8192;
constexpr std::uint64_t tiny_piece_bytes = 256;
constexpr std::uint64_t large_far_piece_bytes = std::uint64_t{256} << 10;
constexpr std::size_t portion_pieces = 64 * 1024;

struct Piece {
  std::int64_t offset;
  std::int64_t address;
  std::uint64_t len_bytes;

  [[nodiscard]] std::int64_t end() const { return offset + as_signed(len_bytes); }
};

double pieces_in(const Slice& slice) {
  return static_cast<double>(slice.len_bytes) / static_cast<double>(slice.pattern.len_bytes()) *
         static_cast<double>(slice.pattern.piece_count());
}

class Scatter {
 public:
  Scatter(const IndependentRequest& request, LogicalFile& file, Counters& counters)
      : request_(request), file_(file), counters_(counters) {
    const double pieces = std::max(pieces_in(request.file), pieces_in(request.memory));
    pieces_.reserve(std::min(static_cast<std::size_t>(pieces) + 1, portion_pieces));
  }

  Status add(const Piece& piece) {
    if (pieces_.size() == portion_pieces) SHIMA_TRY(flush());
    pieces_.push_back(piece);
    return {};
  }

  Status flush() {
    sort();
    merge();
    const ScopedTimer timer(counters_.disk_ns, request_.options.timed);
    fault_point(FaultPhase::disk);
    counters_.runs += runs_.size();
    const bool writes = request_.direction == Direction::write;
    const bool by_ring = request_.options.ring == Toggle::automatic
                             ? !writes || file_.is_far()
                             : request_.options.ring == Toggle::enable;
    const bool moved =
        (writes && lie_close(runs_) && file_.write_mapped(runs_)) || (by_ring && by_two(writes));
    if (!moved) SHIMA_TRY(one_by_one());
    pieces_.clear();
    return {};
  }

 private:
  // Both halves in parallel if a core is idle: reading from the cache is copying, which scales.
  bool by_two(bool writes) {
    const bool shares = request_.options.may_share && !writes && runs_.size() >= few_pieces;
    const std::span<const LogicalRun> runs(runs_);
    const auto [first, second] = std::pair(runs.first(runs.size() / (shares ? 2 : 1)),
                                           runs.subspan(runs.size() / (shares ? 2 : 1)));
    bool others_moved = true;
    if (shares) {
      helper_.start(
          [&]() -> Status {
            others_moved = file_.move_apart(second, writes);
            return {};
          },
          true);
    }
    const bool moved = file_.move_apart(first, writes);
    return shares ? helper_.wait().has_value() && moved && others_moved : moved;
  }

  // By file offset, unless pieces of a write overlap.
  void sort() {
    if (std::ranges::is_sorted(pieces_, {}, &Piece::offset)) return;
    const bool writes = request_.direction == Direction::write;
    if (writes) unsorted_ = pieces_;
    std::ranges::sort(pieces_, {}, &Piece::offset);
    const auto overlap = [](const Piece& a, const Piece& b) { return a.end() > b.offset; };
    if (writes && std::ranges::adjacent_find(pieces_, overlap) != pieces_.end())
      pieces_.swap(unsorted_);
  }

  void merge() {
    memory_.clear();
    runs_.clear();
    memory_.reserve(pieces_.size());  // runs point into it
    runs_.reserve(pieces_.size());
    for (const Piece& piece : pieces_) {
      memory_.push_back({reinterpret_cast<void*>(piece.address), piece.len_bytes});
      if (!runs_.empty() && continues(piece)) {
        LogicalRun& last = runs_.back();
        last.pieces = {last.pieces.data(), last.pieces.size() + 1};
        last.len_bytes += piece.len_bytes;
      } else {
        runs_.push_back({FileOffset{piece.offset}, {&memory_.back(), 1}, piece.len_bytes});
      }
    }
  }

  [[nodiscard]] bool continues(const Piece& piece) const {
    const LogicalRun& last = runs_.back();
    return last.begin.value + as_signed(last.len_bytes) == piece.offset &&
           last.pieces.size() < IOV_MAX;
  }

  Status one_by_one() {
    for (const LogicalRun& run : runs_) {
      if (request_.direction == Direction::write) {
        SHIMA_TRY(file_.write(run.begin, run.pieces));
        continue;
      }
      SHIMA_TRY_ASSIGN(const std::uint64_t found, file_.read(run.begin, run.pieces));
      if (found < run.len_bytes)
        return fail(Code::io, "the file was truncated while it was being read");
    }
    return {};
  }

  const IndependentRequest& request_;
  LogicalFile& file_;
  Counters& counters_;
  std::vector<Piece> pieces_;
  std::vector<Piece> unsorted_;
  std::vector<iovec> memory_;
  std::vector<LogicalRun> runs_;
  Aside helper_{[] {}};  // starts its thread on first use
};

}  // namespace

bool goes_through_mapping(const IndependentRequest& request, LogicalFile& file) {
  if (request.direction == Direction::read) return false;
  const Bounds bounds = bounds_of(request.file);
  return lie_close(static_cast<std::uint64_t>(pieces_in(request.file)),
                   as_unsigned(bounds.highest - bounds.lowest)) &&
         file.maps_writes();
}

bool worth_scattering(const IndependentRequest& request, LogicalFile& file) {
  const double pieces = pieces_in(request.file);
  const double memory_pieces = pieces_in(request.memory);
  const auto bytes = static_cast<double>(request.file.len_bytes);
  if (goes_through_mapping(request, file)) return true;
  if (file.is_far() && request.options.ring != Toggle::disable)
    return pieces >= 2 && bytes / pieces <= large_far_piece_bytes;
  if (pieces < few_pieces || bytes / pieces > large_piece_bytes) return false;
  if (memory_pieces > pieces && bytes / memory_pieces < tiny_piece_bytes) return false;
  if (!request.file.pattern.ordered()) return true;
  if (request.options.ring != Toggle::automatic) return request.options.ring == Toggle::enable;
  // An ordered request needs no sorting; then many requests at once help only a disk.
  const Bounds bounds = bounds_of(request.file);
  return request.direction == Direction::read &&
         !(file.cached(FileOffset{bounds.lowest}) && file.cached(FileOffset{bounds.highest - 1}));
}

Result<std::uint64_t> move_scattered(const IndependentRequest& request, LogicalFile& file,
                                     Counters& counters) {
  Scatter scatter(request, file, counters);
  Cursor in_file(request.file);
  Cursor in_memory(request.memory);
  while (!in_file.done()) {
    const StripPair pair = match(in_file.strip(), in_memory.strip());
    for (std::uint64_t i = 0; i < pair.count; ++i)
      SHIMA_TRY(scatter.add({pair.a_offset + as_signed(i) * pair.a_stride_bytes,
                             pair.b_offset + as_signed(i) * pair.b_stride_bytes, pair.len_bytes}));
    in_file.advance(pair.len_bytes * pair.count);
    in_memory.advance(pair.len_bytes * pair.count);
  }
  SHIMA_TRY(scatter.flush());
  return request.file.len_bytes;
}

}  // namespace shima
