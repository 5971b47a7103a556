// Moves a member's own bytes by one of four methods, the cheapest first:
//
// - direct: the file side and the memory side are one piece each: one call.
// - batched: both patterns are walked together; the pieces of memory for one contiguous run of the
//   file are passed to one vectored call. Tiny pieces of memory are copied through a buffer,
// because
//   an iovec entry costs the kernel more than the copy.
// - scattered: many small pieces with gaps between them (scattered.h).
// - sieved (reads only): if the file's pieces are small and close together, whole windows are read
//   and the pieces copied out. Writes never do this, because the bytes between the pieces may
//   belong to other writers.
#include "independent/independent.h"

#include <limits.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/clock.h"
#include "base/fault_point.h"
#include "independent/scattered.h"
#include "pattern/copy.h"

namespace shima {
namespace {

constexpr std::uint64_t bounce_bytes = 256 * 1024;
constexpr std::uint64_t tiny_piece_bytes = 256;    // below, a copy is cheaper than an iovec entry
constexpr std::uint64_t sieve_pitch_bytes = 4096;  // pieces closer than this are sieved

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
  const FileOffset offset{bounds_of(request.file).lowest};
  const auto memory = reinterpret_cast<void*>(bounds_of(request.memory).lowest);
  const std::uint64_t len = request.file.len_bytes;
  ++counters.runs;
  const ScopedTimer timer(counters.disk_ns, request.options.timed);
  fault_point(FaultPhase::disk);
  if (request.direction == Direction::read) {
    if (request.options.read_ahead != nullptr) request.options.read_ahead->before_read(offset, len);
    return file.read(offset, memory, len);
  }
  SHIMA_TRY(file.write(offset, memory, len));
  return len;
}

// A contiguous piece of `len_bytes` at `address`, as one side of a copy.
Cursor contiguous_at(const std::byte* address, std::uint64_t len_bytes) {
  return Cursor({Pattern::contiguous(len_bytes), static_cast<std::int64_t>(address_of(address)), 0,
                 len_bytes});
}

// Moves data through a buffer, one chunk at a time, for memory in tiny pieces.
Result<std::uint64_t> move_bounced(const IndependentRequest& request, LogicalFile& file,
                                   Counters& counters) {
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(bounce_bytes);
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
    SHIMA_TRY_ASSIGN(const std::uint64_t n, move_batched({.direction = request.direction,
                                                          .file = chunk,
                                                          .memory = bounce,
                                                          .options = request.options},
                                                         file, counters));
    if (request.direction == Direction::read) {
      Cursor arrived = contiguous_at(buffer.get(), n);
      copy_between(0, in_memory, 0, arrived);
    }
    moved += n;
    if (n < len) break;
  }
  return moved;
}

// Reads whole windows of the file and copies the pieces out.
Result<std::uint64_t> read_sieved(const IndependentRequest& request, LogicalFile& file,
                                  Counters& counters) {
  const auto [lowest, highest] = bounds_of(request.file);
  const std::uint64_t window_bytes =
      std::min(request.options.sieve_bytes != 0 ? request.options.sieve_bytes : default_sieve_bytes,
               as_unsigned(highest - lowest));
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(window_bytes);
  Cursor in_file(request.file);
  Cursor in_memory(request.memory);
  while (!in_file.done()) {
    const std::int64_t begin = in_file.strip().offset;
    const std::uint64_t len = std::min(window_bytes, as_unsigned(highest - begin));
    std::uint64_t n = 0;
    {
      const ScopedTimer timer(counters.disk_ns, request.options.timed);
      fault_point(FaultPhase::disk);
      SHIMA_TRY_ASSIGN(n, file.read(FileOffset{begin}, buffer.get(), len));
    }
    ++counters.runs;
    counters.disk_bytes_read += n;
    for_each_strip_below(in_file, begin + as_signed(n), [&](const Strip& strip) {
      const std::uint64_t bytes = strip.len_bytes * strip.count;
      Cursor found(
          {Pattern::strided(strip.count, strip.stride_bytes, Pattern::contiguous(strip.len_bytes)),
           strip.offset, 0, bytes});
      copy_between(0, in_memory, address_of(buffer.get()) - static_cast<std::uintptr_t>(begin),
                   found);
    });
    if (n < len) break;
  }
  return in_file.byte();
}

bool worth_sieving(const IndependentRequest& request) {
  if (request.direction != Direction::read || !request.options.may_sieve ||
      !request.file.pattern.ordered())
    return false;
  const Bounds bounds = bounds_of(request.file);
  const double share = static_cast<double>(request.file.len_bytes) /
                       static_cast<double>(request.file.pattern.len_bytes());
  const double pieces = share * static_cast<double>(request.file.pattern.piece_count());
  return pieces > 2 && static_cast<double>(bounds.highest - bounds.lowest) / pieces <
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
