#include "store/logical_file.h"

#include "store/pieces.h"

namespace shima {
namespace {

// Calls move(extent, pieces) for each part of the pieces that lies in one subfile, until one moves
// less than all of its bytes; returns the sum.
template <class Move>
Result<std::uint64_t> move_by_extent(const Layout& layout, FileOffset offset,
                                     std::span<const iovec> pieces, Move move) {
  std::uint64_t left = bytes_in(pieces);
  Extent extent = layout.locate(offset, left);
  if (extent.len_bytes == left) return move(extent, pieces);
  std::uint64_t moved = 0;
  PieceCursor cursor(pieces);
  while (left > 0) {
    const std::vector<iovec> part = cursor.take(extent.len_bytes);
    SHIMA_TRY_ASSIGN(const std::uint64_t n, move(extent, std::span<const iovec>(part)));
    moved += n;
    if (n < extent.len_bytes) break;
    left -= n;
    extent = layout.locate(offset + as_signed(moved), left);
  }
  return moved;
}

}  // namespace

LogicalFile::LogicalFile(std::unique_ptr<Subfile> subfile) : layout_(Layout::plain()) {
  subfiles_.push_back(std::move(subfile));
}

Status LogicalFile::write(FileOffset offset, std::span<const iovec> pieces) {
  const auto moved = move_by_extent(
      layout_, offset, pieces, [&](const Extent& extent, std::span<const iovec> part) {
        const Status status =
            subfiles_[static_cast<std::size_t>(extent.subfile)]->write(extent.begin, part);
        return status ? Result<std::uint64_t>(extent.len_bytes) : std::unexpected(status.error());
      });
  if (!moved) return std::unexpected(moved.error());
  return {};
}

Result<std::uint64_t> LogicalFile::read(FileOffset offset, std::span<const iovec> pieces) {
  return move_by_extent(
      layout_, offset, pieces, [&](const Extent& extent, std::span<const iovec> part) {
        return subfiles_[static_cast<std::size_t>(extent.subfile)]->read(extent.begin, part);
      });
}

Status LogicalFile::write(FileOffset offset, const void* data, std::uint64_t len_bytes) {
  const iovec piece{const_cast<void*>(data), len_bytes};
  return write(offset, std::span<const iovec>(&piece, 1));
}

Result<std::uint64_t> LogicalFile::read(FileOffset offset, void* data, std::uint64_t len_bytes) {
  const iovec piece{data, len_bytes};
  return read(offset, std::span<const iovec>(&piece, 1));
}

bool LogicalFile::cached(FileOffset offset) {
  const Extent extent = layout_.locate(offset, 1);
  return subfiles_[static_cast<std::size_t>(extent.subfile)]->cached(extent.begin);
}

}  // namespace shima
