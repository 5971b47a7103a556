#include "store/subfile/direct_subfile.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "base/copy/distance.h"
#include "base/page_size.h"
#include "store/subfile/pieces.h"

namespace shima {
namespace {

constexpr std::uint64_t bounce_bytes = std::uint64_t{4} << 20;

// The addition of STATX_DIOALIGN to statx(2), which headers of older systems lack.
constexpr unsigned statx_direct_alignment = 0x2000;
constexpr std::size_t statx_memory_at = 0x98;
constexpr std::size_t statx_offset_at = 0x9c;

bool is_usable(std::uint64_t alignment) {
  constexpr std::uint64_t largest = std::uint64_t{1} << 20;
  return std::has_single_bit(alignment) && alignment <= largest;
}

// Empty if the kernel or the file system does not report it.
std::optional<DirectAlignment> reported_alignment(int fd) {
  struct statx facts{};
  if (::statx(fd, "", AT_EMPTY_PATH, statx_direct_alignment, &facts) != 0 ||
      (facts.stx_mask & statx_direct_alignment) == 0)
    return {};
  const auto field = [&facts](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, reinterpret_cast<const std::byte*>(&facts) + at, sizeof value);
    return std::uint64_t{value};
  };
  const std::uint64_t memory = field(statx_memory_at);
  const std::uint64_t offset = field(statx_offset_at);
  if (!is_usable(memory) || !is_usable(offset)) return {};
  return DirectAlignment{offset, memory, offset};
}

// On NFS and Lustre the preferred length of transfers is very large and not a block size.
std::uint64_t block_of(int fd) {
  constexpr std::uint64_t usual = 4096;
  constexpr blksize_t largest_block = 64 * 1024;
  struct stat facts{};
  if (::fstat(fd, &facts) != 0) return usual;
  if (S_ISBLK(facts.st_mode)) {
    int sector = 0;
    const bool is_known = ::ioctl(fd, BLKSSZGET, &sector) == 0 && sector > 0;
    return is_known ? static_cast<std::uint64_t>(sector) : usual;
  }
  const bool is_block = facts.st_blksize >= 512 && facts.st_blksize <= largest_block;
  return is_block ? static_cast<std::uint64_t>(facts.st_blksize) : usual;
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using AlignedBuffer = std::unique_ptr<std::byte, Free>;

// A transfer's parts, one after the other: edge, whole blocks, edge.
struct Parts {
  std::uint64_t head_bytes = 0;
  std::uint64_t body_bytes = 0;
  std::uint64_t tail_bytes = 0;
};

void gather(std::span<const iovec> pieces, std::byte* to) {
  for (const iovec& piece : pieces) {
    copy_bytes(to, piece.iov_base, piece.iov_len);
    to += piece.iov_len;
  }
}

void scatter(const std::byte* from, std::span<const iovec> pieces, std::uint64_t len_bytes) {
  for (const iovec& piece : pieces) {
    const std::uint64_t len = std::min<std::uint64_t>(piece.iov_len, len_bytes);
    copy_bytes(piece.iov_base, from, len);
    from += len;
    len_bytes -= len;
  }
}

class DirectSubfile final : public Subfile {
 public:
  DirectSubfile(std::unique_ptr<Subfile> buffered, std::unique_ptr<Subfile> direct,
                DirectTransfers transfers, const DirectAlignment& alignment)
      : buffered_(std::move(buffered)),
        direct_(std::move(direct)),
        transfers_(transfers),
        alignment_(alignment) {}

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
  // Runs of whole blocks, submitted together so that the disk processes many at once.
  bool move_apart(std::span<const ApartRun> runs, bool writing) override {
    if (!(writing ? transfers_.write : transfers_.read))
      return buffered_->move_apart(runs, writing);
    return std::ranges::all_of(runs, [this](const ApartRun& run) { return is_whole(run); }) &&
           direct_->move_apart(runs, writing);
  }
  bool maps_writes() override { return !transfers_.write && buffered_->maps_writes(); }
  bool write_mapped(std::span<const ApartRun> runs) override {
    return !transfers_.write && buffered_->write_mapped(runs);
  }
  std::unique_ptr<FileView> view(TargetRange range) override {
    return transfers_.read ? nullptr : buffered_->view(range);
  }
  // Bytes that always come from the disk are not looked up in the page cache.
  bool cached(TargetOffset offset) override {
    return !transfers_.read && buffered_->cached(offset);
  }
  bool writes_to_cache() const override {
    return !transfers_.write && buffered_->writes_to_cache();
  }
  void will_need(TargetRange range) override {
    if (!transfers_.read) buffered_->will_need(range);
  }
  Result<std::uint64_t> size() override { return buffered_->size(); }
  Status truncate(std::uint64_t size_bytes) override { return buffered_->truncate(size_bytes); }
  Status preallocate(std::uint64_t size_bytes) override {
    return buffered_->preallocate(size_bytes);
  }
  Status sync() override {
    const Status direct = direct_->publish();
    const Status buffered = buffered_->sync();
    return direct ? buffered : direct;
  }
  Result<std::optional<TargetOffset>> next_data(TargetOffset from) override {
    return buffered_->next_data(from);
  }
  Status publish() override {
    const Status direct = direct_->publish();
    const Status buffered = buffered_->publish();
    return direct ? buffered : direct;
  }
  void look_again() override {
    direct_->look_again();
    buffered_->look_again();
  }
  bool close_to_open() const override { return buffered_->close_to_open(); }
  std::uint64_t local_identity() const override { return buffered_->local_identity(); }
  bool locks_stay_on_node() const override { return buffered_->locks_stay_on_node(); }
  Status lock(TargetOffset offset, std::uint64_t len_bytes, bool exclusive) override {
    return buffered_->lock(offset, len_bytes, exclusive);
  }
  Result<bool> try_lock(TargetOffset offset, std::uint64_t len_bytes, bool exclusive) override {
    return buffered_->try_lock(offset, len_bytes, exclusive);
  }
  void unlock(TargetOffset offset, std::uint64_t len_bytes) override {
    buffered_->unlock(offset, len_bytes);
  }
  std::string lock_holder(TargetOffset offset, std::uint64_t len_bytes) override {
    return buffered_->lock_holder(offset, len_bytes);
  }
  Status close() override {
    const Status direct = direct_->close();
    const Status buffered = buffered_->close();
    return direct ? buffered : direct;
  }
  Result<FileIdentity> identity() override { return buffered_->identity(); }
  Result<uid_t> owner() override { return buffered_->owner(); }

 private:
  [[nodiscard]] std::uint64_t down(std::uint64_t offset) const {
    return offset & ~(alignment_.block_bytes - 1);
  }
  [[nodiscard]] std::uint64_t up(std::uint64_t offset) const {
    return down(offset + alignment_.block_bytes - 1);
  }
  // No block at or after `end` is whole.
  [[nodiscard]] Parts parts_of(std::uint64_t begin, std::uint64_t len_bytes,
                               std::uint64_t end) const {
    const std::uint64_t first = up(begin);
    const std::uint64_t last = down(std::min(begin + len_bytes, end));
    if (first >= last) return {len_bytes, 0, 0};
    return {first - begin, last - first, begin + len_bytes - last};
  }
  [[nodiscard]] bool is_aligned(std::span<const iovec> pieces) const {
    return std::ranges::all_of(pieces, [this](const iovec& piece) {
      return reinterpret_cast<std::uintptr_t>(piece.iov_base) % alignment_.memory_bytes == 0 &&
             piece.iov_len % alignment_.piece_bytes == 0;
    });
  }
  [[nodiscard]] bool is_whole(const ApartRun& run) const {
    return down(as_unsigned(run.begin.value)) == as_unsigned(run.begin.value) &&
           bytes_in(run.pieces) % alignment_.block_bytes == 0 && is_aligned(run.pieces);
  }
  [[nodiscard]] AlignedBuffer make_buffer(std::uint64_t len_bytes) const {
    const std::uint64_t boundary = std::max(alignment_.memory_bytes, alignment_.block_bytes);
    const std::uint64_t whole = (len_bytes + boundary - 1) & ~(boundary - 1);
    return AlignedBuffer(static_cast<std::byte*>(std::aligned_alloc(boundary, whole)));
  }

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

  // Moves whole blocks. EINVAL means that the file system refuses this direct transfer.
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
  DirectAlignment alignment_;
};

}  // namespace

DirectAlignment direct_alignment(int fd) {
  auto alignment = reported_alignment(fd);
  if (!alignment) {
    const std::uint64_t block = block_of(fd);
    alignment = is_usable(block) ? DirectAlignment{block, block, block} : DirectAlignment{};
  }
  alignment->block_bytes = std::max<std::uint64_t>(alignment->block_bytes, page_size());
  return *alignment;
}

std::unique_ptr<Subfile> make_direct_subfile(std::unique_ptr<Subfile> buffered,
                                             std::unique_ptr<Subfile> direct,
                                             DirectTransfers transfers,
                                             const DirectAlignment& alignment) {
  return std::make_unique<DirectSubfile>(std::move(buffered), std::move(direct), transfers,
                                         alignment);
}

}  // namespace shima
