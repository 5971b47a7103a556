// Moves a member's own bytes by one of four methods, the cheapest first:
//
// - direct: the file side and the memory side are one piece each: one call.
// - batched: both patterns are walked together; the pieces of memory for one contiguous run of the
//   file are passed to one vectored call. Tiny pieces of memory are copied through a buffer: an
//   iovec entry costs the kernel more than the copy.
// - scattered: many small pieces with gaps between them (scattered.h).
// - sieved (reads only): if the file's pieces are small and close together, ranges with many pieces
//   are read and the pieces copied out; wide gaps are left out. Writes never do this, because the
//   bytes between the pieces may belong to other writers.
#include "independent/independent.h"

#include <limits.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/clock.h"
#include "base/fault_point.h"
#include "base/page_size.h"
#include "independent/scattered.h"
#include "pattern/copy.h"

namespace shima {
namespace {

constexpr std::uint64_t bounce_bytes = 256 * 1024;
constexpr std::uint64_t tiny_piece_bytes = 256;   // below, a copy is cheaper than an iovec entry
constexpr std::int64_t sieve_pitch_bytes = 4096;  // pieces closer than this are sieved
// Wider gaps are not read: cached ones cost more than a call, others more than a disk's request.
constexpr std::int64_t cached_gap_bytes = sieve_pitch_bytes;
constexpr std::int64_t stored_gap_bytes = 64 * 1024;
constexpr std::uint64_t cached_sieve_bytes = 256 * 1024;  // stays in a core's own cache
// Reading fewer bytes costs less than a look at whether they are cached.
constexpr std::uint64_t whole_read_bytes = 8 * 1024;
constexpr std::uint64_t few_dense_pieces = 4;
constexpr std::uint64_t dense_piece_bytes = 8192;  // a further copy of larger ones costs more

std::uintptr_t address_of(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

// Pieces of memory for one contiguous run of the file.
class Run {
 public:
  Run(const IndependentRequest& request, LogicalFile& file, Counters& counters)
      : request_(request), file_(file), counters_(counters) {}

  [[nodiscard]] std::uint64_t moved() const { return moved_; }
  [[nodiscard]] bool ended() const { return ended_; }  // a read reached the end of the file

  Status add(std::int64_t offset, std::int64_t address, std::uint64_t len_bytes) {
    if (count_ > 0 && offset == end_) {
      iovec& last = pieces_[count_ - 1];
      if (static_cast<std::int64_t>(address_of(last.iov_base) + last.iov_len) == address) {
        last.iov_len += len_bytes;
        end_ += as_signed(len_bytes);
        return {};
      }
    }
    if (count_ == pieces_.size() || (count_ > 0 && offset != end_)) SHIMA_TRY(flush());
    if (count_ == 0) begin_ = end_ = offset;
    pieces_[count_++] = {reinterpret_cast<void*>(address), len_bytes};
    end_ += as_signed(len_bytes);
    return {};
  }

  Status flush() {
    if (count_ == 0 || ended_) return {};
    const std::span<const iovec> pieces(pieces_.data(), count_);
    const auto wanted = as_unsigned(end_ - begin_);
    count_ = 0;
    ++counters_.runs;
    const ScopedTimer timer(counters_.disk_ns, request_.options.timed);
    fault_point(FaultPhase::disk);
    if (request_.direction == Direction::write) {
      SHIMA_TRY(file_.write(FileOffset{begin_}, pieces));
      moved_ += wanted;
      return {};
    }
    if (request_.options.read_ahead != nullptr)
      request_.options.read_ahead->before_read(FileOffset{begin_}, wanted);
    SHIMA_TRY_ASSIGN(const std::uint64_t n, file_.read(FileOffset{begin_}, pieces));
    moved_ += n;
    ended_ = n < wanted;
    return {};
  }

 private:
  const IndependentRequest& request_;
  LogicalFile& file_;
  Counters& counters_;
  std::array<iovec, 256> pieces_;
  std::size_t count_ = 0;
  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
  std::uint64_t moved_ = 0;
  bool ended_ = false;
};

Result<std::uint64_t> move_batched(const IndependentRequest& request, LogicalFile& file,
                                   Counters& counters) {
  Run run(request, file, counters);
  Cursor in_file(request.file);
  Cursor in_memory(request.memory);
  while (!in_file.done() && !run.ended()) {
    const StripPair pair = match(in_file.strip(), in_memory.strip());
    for (std::uint64_t i = 0; i < pair.count && !run.ended(); ++i) {
      SHIMA_TRY(run.add(pair.a_offset + as_signed(i) * pair.a_stride_bytes,
                        pair.b_offset + as_signed(i) * pair.b_stride_bytes, pair.len_bytes));
    }
    in_file.advance(pair.len_bytes * pair.count);
    in_memory.advance(pair.len_bytes * pair.count);
  }
  SHIMA_TRY(run.flush());
  return run.moved();
}

// One contiguous piece of the file and of memory.
Result<std::uint64_t> move_one_piece(const IndependentRequest& request, LogicalFile& file,
                                     Counters& counters) {
  const auto memory = reinterpret_cast<std::byte*>(bounds_of(request.memory).lowest);
  ++counters.runs;
  const ScopedTimer timer(counters.disk_ns, request.options.timed);
  return move_contiguous(
      {request.direction, {bounds_of(request.file).lowest}, {memory, request.file.len_bytes}},
      request.options.read_ahead, file);
}

// A contiguous piece of `len_bytes` at `address`, as one side of a copy.
Cursor contiguous_at(const std::byte* address, std::uint64_t len_bytes) {
  return Cursor({Pattern::contiguous(len_bytes), static_cast<std::int64_t>(address_of(address)), 0,
                 len_bytes});
}

// Moves data through a buffer, one chunk at a time, for memory in tiny pieces.
Result<std::uint64_t> move_bounced(const IndependentRequest& request, LogicalFile& file,
                                   Counters& counters) {
  const auto buffer =
      SpareBuffer::take(request.options.buffer, std::min(bounce_bytes, request.file.len_bytes));
  Cursor in_memory(request.memory);
  std::uint64_t moved = 0;
  while (moved < request.file.len_bytes) {
    const std::uint64_t len = std::min(bounce_bytes, request.file.len_bytes - moved);
    Slice chunk = request.file;
    chunk.first_byte += moved;
    chunk.len_bytes = len;
    const Slice bounce{Pattern::contiguous(len),
                       static_cast<std::int64_t>(address_of(buffer.get())), 0, len};
    Cursor packed(bounce);
    if (request.direction == Direction::write) copy_between(0, packed, 0, in_memory);
    const IndependentRequest part{.direction = request.direction,
                                  .file = chunk,
                                  .memory = bounce,
                                  .options = request.options};
    const bool scattered = request.direction == Direction::write && worth_scattering(part, file);
    SHIMA_TRY_ASSIGN(const std::uint64_t n, scattered ? move_scattered(part, file, counters)
                                                      : move_batched(part, file, counters));
    if (request.direction == Direction::read) {
      Cursor arrived = contiguous_at(buffer.get(), n);
      copy_between(0, in_memory, 0, arrived);
    }
    moved += n;
    if (n < len) break;
  }
  return moved;
}

// Reads of one window: ranges of the file that begin and end with a piece.
class SievedWindow {
 public:
  explicit SievedWindow(std::int64_t widest_gap) : widest_gap_(widest_gap) {}

  // Finds the ranges below `limit`; `ahead` is at the first piece.
  void plan(Cursor ahead, std::int64_t limit) {
    ranges_.clear();
    for_each_strip_below(ahead, limit, [&](const Strip& strip) {
      const bool dense = strip.stride_bytes - as_signed(strip.len_bytes) <= widest_gap_;
      const std::uint64_t parts = dense ? 1 : strip.count;
      const std::int64_t part_bytes =
          as_signed(strip.len_bytes) +
          (dense ? as_signed(strip.count - 1) * strip.stride_bytes : std::int64_t{0});
      for (std::uint64_t i = 0; i < parts; ++i)
        add(strip.offset + as_signed(i) * strip.stride_bytes, part_bytes);
    });
  }

  [[nodiscard]] std::span<const FileRange> ranges() const { return ranges_; }

 private:
  void add(std::int64_t begin, std::int64_t len_bytes) {
    const FileOffset end{begin + len_bytes};
    if (!ranges_.empty() && begin - ranges_.back().end.value <= widest_gap_) {
      ranges_.back().end = end;
    } else {
      ranges_.push_back({FileOffset{begin}, end});
    }
  }

  std::int64_t widest_gap_;
  std::vector<FileRange> ranges_;
};

bool is_cached(const Bounds& bounds, LogicalFile& file) {
  return file.cached(FileOffset{bounds.lowest}) && file.cached(FileOffset{bounds.highest - 1});
}

// Copies the pieces of one strip, whose offsets count from `from`, to the next places in memory.
void copy_out(Cursor& in_memory, std::uintptr_t from, const Strip& strip) {
  const std::uint64_t bytes = strip.len_bytes * strip.count;
  const StripPair pair = match(in_memory.strip(), strip);
  if (pair.len_bytes * pair.count == bytes) {
    copy_strips(0, from, pair);
    in_memory.advance(bytes);
    return;
  }
  Cursor found(
      {Pattern::strided(strip.count, strip.stride_bytes, Pattern::contiguous(strip.len_bytes)),
       strip.offset, 0, bytes});
  copy_between(0, in_memory, from, found);
}

// Reads ranges with many pieces and copies the pieces out.
Result<std::uint64_t> read_sieved(const IndependentRequest& request, LogicalFile& file,
                                  Counters& counters) {
  const Bounds bounds = bounds_of(request.file);
  const std::uint64_t span_bytes = as_unsigned(bounds.highest - bounds.lowest);
  const bool cached = span_bytes > whole_read_bytes && is_cached(bounds, file);
  const std::uint64_t usual_bytes = cached ? cached_sieve_bytes : default_sieve_bytes;
  const std::uint64_t window_bytes = std::min(
      request.options.sieve_bytes != 0 ? request.options.sieve_bytes : usual_bytes, span_bytes);
  // As pages of a plain file lie, so that reads are fast (base/copy/distance.h).
  const auto buffer = SpareBuffer::take(request.options.buffer, window_bytes + page_size());
  SievedWindow window(cached ? cached_gap_bytes : stored_gap_bytes);
  Cursor in_file(request.file);
  Cursor in_memory(request.memory);
  bool ended = false;
  while (!in_file.done() && !ended) {
    const std::int64_t begin = in_file.strip().offset;
    std::byte* const first = buffer.get() + begin % as_signed(page_size());
    const auto place = [&](FileOffset offset) { return first + (offset.value - begin); };
    std::int64_t limit = begin + as_signed(window_bytes);
    window.plan(in_file, limit);
    for (const FileRange& range : window.ranges()) {
      const std::uint64_t len = as_unsigned(range.end - range.begin);
      const ScopedTimer timer(counters.disk_ns, request.options.timed);
      fault_point(FaultPhase::disk);
      SHIMA_TRY_ASSIGN(const std::uint64_t n, file.read(range.begin, place(range.begin), len));
      ++counters.runs;
      counters.disk_bytes_read += n;
      ended = n < len;
      if (!ended) continue;
      limit = range.begin.value + as_signed(n);
      break;
    }
    const std::uintptr_t from = address_of(first) - static_cast<std::uintptr_t>(begin);
    for_each_strip_below(in_file, limit,
                         [&](const Strip& strip) { copy_out(in_memory, from, strip); });
  }
  return in_file.byte();
}

// Whether the first pieces are so close that reading the bytes between them costs less than a call
// for each. Blocks of an array begin like this, and have wide gaps farther on.
bool begins_dense(const Slice& in_file) {
  const Strip strip = Cursor(in_file).strip();
  return strip.count >= few_dense_pieces && strip.len_bytes <= dense_piece_bytes &&
         strip.stride_bytes - as_signed(strip.len_bytes) <= dense_gap_bytes;
}

bool worth_sieving(const IndependentRequest& request) {
  if (request.direction != Direction::read || !request.options.may_sieve ||
      !request.file.pattern.ordered())
    return false;
  const Bounds bounds = bounds_of(request.file);
  const double share = static_cast<double>(request.file.len_bytes) /
                       static_cast<double>(request.file.pattern.len_bytes());
  const double pieces = share * static_cast<double>(request.file.pattern.piece_count());
  if (pieces <= 2) return false;
  return begins_dense(request.file) ||
         static_cast<double>(bounds.highest - bounds.lowest) / pieces <
             static_cast<double>(sieve_pitch_bytes);
}

// The end of the file is looked up only if the read may reach it.
bool lies_within(const IndependentRequest& request, LogicalFile& file) {
  if (request.direction == Direction::write) return true;
  const auto size = file.size();
  return size && bounds_of(request.file).highest <= size->value;
}

bool has_tiny_pieces(const Slice& memory) {
  return memory.pattern.len_bytes() / memory.pattern.piece_count() < tiny_piece_bytes;
}

}  // namespace

Result<std::uint64_t> move_independently(const IndependentRequest& request, LogicalFile& file,
                                         Counters& counters) {
  if (request.file.len_bytes == 0) return 0;
  std::uint64_t& disk_bytes = request.direction == Direction::write ? counters.disk_bytes_written
                                                                    : counters.disk_bytes_read;
  Result<std::uint64_t> moved = 0;
  if (request.file.pattern.is_contiguous() && request.memory.pattern.is_contiguous()) {
    moved = move_one_piece(request, file, counters);
  } else if (worth_sieving(request)) {
    return read_sieved(request, file, counters);
  } else if (!request.memory.pattern.is_contiguous() && has_tiny_pieces(request.memory)) {
    moved = move_bounced(request, file, counters);
  } else if (worth_scattering(request, file) && lies_within(request, file)) {
    moved = move_scattered(request, file, counters);
  } else {
    moved = move_batched(request, file, counters);
  }
  if (moved) disk_bytes += *moved;
  return moved;
}

}  // namespace shima
