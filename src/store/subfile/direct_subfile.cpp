#include "store/subfile/direct_subfile.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "store/subfile/pieces.h"

namespace shima {
namespace {

// At least a page: a page that one member writes directly and another through the page cache would
// lose one of them. No disk in use has larger blocks.
constexpr std::uint64_t block_bytes = 4096;
constexpr std::uint64_t bounce_bytes = std::uint64_t{4} << 20;

std::uint64_t down(std::uint64_t offset) { return offset / block_bytes * block_bytes; }
std::uint64_t up(std::uint64_t offset) { return down(offset + block_bytes - 1); }

bool is_aligned(std::span<const iovec> pieces) {
  return std::ranges::all_of(pieces, [](const iovec& piece) {
    return (reinterpret_cast<std::uintptr_t>(piece.iov_base) | piece.iov_len) % block_bytes == 0;
  });
}

bool is_whole(const ApartRun& run) {
  return as_unsigned(run.begin.value) % block_bytes == 0 && is_aligned(run.pieces);
}

// A transfer's parts, one after the other: edge, whole blocks, edge.
struct Parts {
  std::uint64_t head_bytes = 0;
  std::uint64_t body_bytes = 0;
  std::uint64_t tail_bytes = 0;
};

// No block at or after `end` is whole.
Parts parts_of(std::uint64_t begin, std::uint64_t len_bytes, std::uint64_t end) {
  const std::uint64_t first = up(begin);
  const std::uint64_t last = down(std::min(begin + len_bytes, end));
  if (first >= last) return {len_bytes, 0, 0};
  return {first - begin, last - first, begin + len_bytes - last};
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using AlignedBuffer = std::unique_ptr<std::byte, Free>;

AlignedBuffer make_buffer(std::uint64_t len_bytes) {
  return AlignedBuffer(static_cast<std::byte*>(std::aligned_alloc(block_bytes, len_bytes)));
}

void gather(std::span<const iovec> pieces, std::byte* to) {
  for (const iovec& piece : pieces) {
    std::memcpy(to, piece.iov_base, piece.iov_len);
    to += piece.iov_len;
  }
}

void scatter(const std::byte* from, std::span<const iovec> pieces, std::uint64_t len_bytes) {
  for (const iovec& piece : pieces) {
    const std::uint64_t len = std::min<std::uint64_t>(piece.iov_len, len_bytes);
    std::memcpy(piece.iov_base, from, len);
    from += len;
    len_bytes -= len;
  }
}

class DirectSubfile final : public Subfile {
 public:
  DirectSubfile(std::unique_ptr<Subfile> buffered, std::unique_ptr<Subfile> direct,
                DirectTransfers transfers)
      : buffered_(std::move(buffered)), direct_(std::move(direct)), transfers_(transfers) {}

  Status write(TargetOffset offset, std::span<const iovec> pieces) override {
    if (!transfers_.write) return buffered_->write(offset, pieces);
    const auto moved = move(offset, pieces, ~std::uint64_t{0}, write_part);
    if (!moved) return std::unexpected(moved.error());
    return {};
  }
  Result<std::uint64_t> read(TargetOffset offset, std::span<const iovec> pieces) override {
    if (!transfers_.read) return buffered_->read(offset, pieces);
    SHIMA_TRY_ASSIGN(const std::uint64_t end, buffered_->size());
    return move(offset, pieces, end, read_part);
  }
  // Runs of whole blocks; the disk has work for many at once.
  bool move_apart(std::span<const ApartRun> runs, bool writing) override {
    if (!(writing ? transfers_.write : transfers_.read))
      return buffered_->move_apart(runs, writing);
    return std::ranges::all_of(runs, is_whole) && direct_->move_apart(runs, writing);
  }
  // What comes from the disk in any case is not worth looking for in the page cache.
  bool cached(TargetOffset offset) override {
    return !transfers_.read && buffered_->cached(offset);
  }
  void will_need(TargetRange range) override {
    if (!transfers_.read) buffered_->will_need(range);
  }
  Result<std::uint64_t> size() override { return buffered_->size(); }
  Status truncate(std::uint64_t size_bytes) override { return buffered_->truncate(size_bytes); }
  Status preallocate(std::uint64_t size_bytes) override {
    return buffered_->preallocate(size_bytes);
  }
  Status sync() override { return buffered_->sync(); }
  Result<std::optional<TargetOffset>> next_data(TargetOffset from) override {
    return buffered_->next_data(from);
  }
  Status publish() override { return buffered_->publish(); }
  void look_again() override { buffered_->look_again(); }
  bool close_to_open() const override { return buffered_->close_to_open(); }
  bool locks_stay_on_node() const override { return buffered_->locks_stay_on_node(); }
  Status lock(TargetOffset offset, std::uint64_t len_bytes, bool exclusive) override {
    return buffered_->lock(offset, len_bytes, exclusive);
  }
  void unlock(TargetOffset offset, std::uint64_t len_bytes) override {
    buffered_->unlock(offset, len_bytes);
  }
  Status close() override {
    const Status direct = direct_->close();
    const Status buffered = buffered_->close();
    return direct ? buffered : direct;
  }
  Result<FileIdentity> identity() override { return buffered_->identity(); }

 private:
  using MovePart = Result<std::uint64_t> (*)(Subfile& file, TargetOffset offset,
                                             std::span<const iovec> pieces);

  static Result<std::uint64_t> write_part(Subfile& file, TargetOffset offset,
                                          std::span<const iovec> pieces) {
    SHIMA_TRY(file.write(offset, pieces));
    return bytes_in(pieces);
  }
  static Result<std::uint64_t> read_part(Subfile& file, TargetOffset offset,
                                         std::span<const iovec> pieces) {
    return file.read(offset, pieces);
  }

  Result<std::uint64_t> move(TargetOffset offset, std::span<const iovec> pieces, std::uint64_t end,
                             MovePart move_part) {
    const Parts parts = parts_of(as_unsigned(offset.value), bytes_in(pieces), end);
    PieceCursor cursor(pieces);
    std::uint64_t moved = 0;
    for (const auto& [len_bytes, directly] : {std::pair(parts.head_bytes, false),
                                              {parts.body_bytes, true},
                                              {parts.tail_bytes, false}}) {
      if (len_bytes == 0) continue;
      const std::vector<iovec> part = cursor.take(len_bytes);
      const TargetOffset at = offset + as_signed(moved);
      SHIMA_TRY_ASSIGN(const std::uint64_t n, directly ? move_blocks(at, part, move_part)
                                                       : move_part(*buffered_, at, part));
      moved += n;
      if (n < len_bytes) break;
    }
    return moved;
  }

  // Whole blocks. EINVAL is how a file system says that it does not take this directly.
  Result<std::uint64_t> move_blocks(TargetOffset offset, std::span<const iovec> pieces,
                                    MovePart move_part) {
    auto moved = is_aligned(pieces) ? move_part(*direct_, offset, pieces)
                                    : move_through_buffer(offset, pieces, move_part);
    if (!moved && moved.error().sys_errno == EINVAL) return move_part(*buffered_, offset, pieces);
    return moved;
  }

  Result<std::uint64_t> move_through_buffer(TargetOffset offset, std::span<const iovec> pieces,
                                            MovePart move_part) {
    std::uint64_t left = bytes_in(pieces);
    const AlignedBuffer buffer = make_buffer(std::min(left, bounce_bytes));
    if (!buffer) return move_part(*buffered_, offset, pieces);
    PieceCursor cursor(pieces);
    std::uint64_t moved = 0;
    for (std::uint64_t len = 0; left > 0; left -= len) {
      len = std::min(left, bounce_bytes);
      const std::vector<iovec> part = cursor.take(len);
      const iovec whole{buffer.get(), len};
      if (move_part == write_part) gather(part, buffer.get());
      SHIMA_TRY_ASSIGN(const std::uint64_t n, move_part(*direct_, offset + as_signed(moved),
                                                        std::span<const iovec>(&whole, 1)));
      if (move_part == read_part) scatter(buffer.get(), part, n);
      moved += n;
      if (n < len) break;
    }
    return moved;
  }

  std::unique_ptr<Subfile> buffered_;
  std::unique_ptr<Subfile> direct_;
  DirectTransfers transfers_;
};

}  // namespace

std::unique_ptr<Subfile> make_direct_subfile(std::unique_ptr<Subfile> buffered,
                                             std::unique_ptr<Subfile> direct,
                                             DirectTransfers transfers) {
  return std::make_unique<DirectSubfile>(std::move(buffered), std::move(direct), transfers);
}

}  // namespace shima
