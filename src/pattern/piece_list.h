// Many contiguous pieces at unrelated offsets, as flat arrays.
//
// A list has one image, the same in memory and on the wire, so that it is encoded by copying and
// decoded by checking it where it is. Offsets are 4 or 8 bytes wide, lengths 0 (all equal) to 8,
// whichever is the least that all fit. Pieces are grouped in blocks of 64. Each block stores the
// offset of its first piece, to which narrow offsets are relative, and the number of data bytes
// before it; a search bisects the blocks and then looks through one.
//
//   image = count widths equal_len_bytes { block_offset block_byte } { offset } { len_bytes }
//   padding
//
// The offset of the first piece is 0. Immutable; copies share the image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"

namespace shima {

class PieceList {
 public:
  // What follows from the pieces (see PatternNode).
  struct Facts {
    std::uint64_t len_bytes = 0;
    std::int64_t lowest = 0;
    std::int64_t highest = 0;
    std::uint64_t granule_bytes = 0;
    bool ordered = true;
  };

  // The empty list.
  PieceList() = default;
  // `offsets[0]` is 0, no length is 0, and the spans have one length.
  [[nodiscard]] static PieceList make(std::span<const std::int64_t> offsets,
                                      std::span<const std::uint64_t> lens_bytes);
  // The list whose image `in` begins with, which is removed from `in`. Refuses what make() cannot
  // have made. With `owner` the image stays where it is, and `owner` keeps it there; without, it is
  // copied.
  [[nodiscard]] static Result<PieceList> decode(std::span<const std::byte>& in,
                                                const std::shared_ptr<const void>& owner);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::span<const std::byte> image() const { return image_; }
  [[nodiscard]] std::int64_t offset(std::uint64_t piece) const {
    return is_narrow_ ? block_offset(piece / block_pieces) +
                            load<std::int32_t>(offsets_ + piece * sizeof(std::int32_t))
                      : load<std::int64_t>(offsets_ + piece * sizeof(std::int64_t));
  }
  [[nodiscard]] std::uint64_t len_bytes(std::uint64_t piece) const {
    switch (len_width_) {
      case 1:
        return load<std::uint8_t>(lens_ + piece);
      case 2:
        return load<std::uint16_t>(lens_ + piece * 2);
      case 4:
        return load<std::uint32_t>(lens_ + piece * 4);
      case 8:
        return load<std::uint64_t>(lens_ + piece * 8);
      default:
        return equal_len_bytes_;
    }
  }
  // The data bytes before a piece.
  [[nodiscard]] std::uint64_t first_byte(std::uint64_t piece) const;
  // The piece that holds a data byte, which the list has.
  [[nodiscard]] std::uint64_t piece_of_byte(std::uint64_t byte) const;
  // The first piece that ends beyond `offset`, or count(). The list must be ordered.
  [[nodiscard]] std::uint64_t first_beyond(std::int64_t offset) const;

  [[nodiscard]] Facts facts() const;

 private:
  static constexpr std::uint64_t block_pieces = 64;
  static constexpr std::size_t header_bytes = 3 * sizeof(std::uint64_t);

  template <class T>
  [[nodiscard]] static T load(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  [[nodiscard]] std::uint64_t block_count() const {
    return (count_ + block_pieces - 1) / block_pieces;
  }
  [[nodiscard]] std::int64_t block_offset(std::uint64_t block) const {
    return load<std::int64_t>(blocks_ + block * 16);
  }
  [[nodiscard]] std::uint64_t block_byte(std::uint64_t block) const {
    return load<std::uint64_t>(blocks_ + block * 16 + 8);
  }
  // Where the arrays of an image with these numbers are; false if `available` is less than it.
  [[nodiscard]] bool place_arrays(const std::byte* image, std::uint64_t available);
  [[nodiscard]] bool is_sound() const;

  std::span<const std::byte> image_;
  std::shared_ptr<const void> owner_;
  std::uint64_t count_ = 0;
  std::uint64_t equal_len_bytes_ = 0;
  unsigned len_width_ = 0;
  bool is_narrow_ = false;
  const std::byte* blocks_ = nullptr;
  const std::byte* offsets_ = nullptr;
  const std::byte* lens_ = nullptr;
};

// Collects pieces for a list and joins neighbours in data order that are neighbours in offset
// order.
class PieceCollector {
 public:
  void reserve(std::size_t pieces) {
    offsets_.reserve(pieces);
    lens_bytes_.reserve(pieces);
  }
  void add(std::int64_t offset, std::uint64_t len_bytes) {
    if (len_bytes == 0) return;
    if (!offsets_.empty() && end_ == offset) {
      lens_bytes_.back() += len_bytes;
    } else {
      offsets_.push_back(offset);
      lens_bytes_.push_back(len_bytes);
    }
    end_ = offset + static_cast<std::int64_t>(len_bytes);
  }
  [[nodiscard]] std::vector<std::int64_t>& offsets() { return offsets_; }
  [[nodiscard]] const std::vector<std::uint64_t>& lens_bytes() const { return lens_bytes_; }

 private:
  std::vector<std::int64_t> offsets_;
  std::vector<std::uint64_t> lens_bytes_;
  std::int64_t end_ = 0;
};

}  // namespace shima
