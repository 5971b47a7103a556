// Pieces of memory, here or in another task, and walks over them.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace shima::lapi {

struct Piece {
  std::uint64_t address = 0;
  std::uint64_t len_bytes = 0;

  [[nodiscard]] std::byte* data() const { return reinterpret_cast<std::byte*>(address); }
};

// One piece or many; one needs no allocation.
class Pieces {
 public:
  Pieces() = default;
  Pieces(std::uint64_t address, std::uint64_t len_bytes) : one_{address, len_bytes} {}
  Pieces(const void* address, std::uint64_t len_bytes)
      : Pieces(reinterpret_cast<std::uint64_t>(address), len_bytes) {}
  explicit Pieces(std::vector<Piece> many) : many_(std::move(many)), is_many_(true) {}

  [[nodiscard]] std::span<const Piece> all() const {
    return is_many_ ? std::span<const Piece>(many_) : std::span<const Piece>(&one_, 1);
  }
  [[nodiscard]] bool is_many() const { return is_many_; }
  [[nodiscard]] std::uint64_t len_bytes() const {
    std::uint64_t total = 0;
    for (const Piece& piece : all()) total += piece.len_bytes;
    return total;
  }

 private:
  Piece one_;
  std::vector<Piece> many_;
  bool is_many_ = false;
};

// A position in pieces.
class Walk {
 public:
  Walk() = default;
  explicit Walk(std::span<const Piece> pieces) : pieces_(pieces) { skip_empty(); }

  [[nodiscard]] bool at_end() const { return pieces_.empty(); }
  // The rest of the piece at the position.
  [[nodiscard]] Piece rest() const {
    return {pieces_.front().address + done_, pieces_.front().len_bytes - done_};
  }
  // By at most the rest of the piece.
  void advance(std::uint64_t len_bytes) {
    done_ += len_bytes;
    if (done_ < pieces_.front().len_bytes) return;
    done_ = 0;
    pieces_ = pieces_.subspan(1);
    skip_empty();
  }
  void advance_far(std::uint64_t len_bytes) {
    while (len_bytes > 0 && !at_end()) {
      const std::uint64_t part = std::min(len_bytes, rest().len_bytes);
      advance(part);
      len_bytes -= part;
    }
  }
  // Describes up to `room.size()` pieces of at most `most_bytes` in total; returns how many.
  [[nodiscard]] std::size_t describe(std::span<iovec> room, std::uint64_t most_bytes) const {
    Walk ahead = *this;
    std::size_t count = 0;
    for (; count < room.size() && most_bytes > 0 && !ahead.at_end(); ++count) {
      const Piece piece = ahead.rest();
      const std::uint64_t part = std::min(most_bytes, piece.len_bytes);
      room[count] = {piece.data(), part};
      ahead.advance(part);
      most_bytes -= part;
    }
    return count;
  }

 private:
  void skip_empty() {
    while (!pieces_.empty() && pieces_.front().len_bytes == 0) pieces_ = pieces_.subspan(1);
  }

  std::span<const Piece> pieces_;
  std::uint64_t done_ = 0;  // of the first
};

// Calls move(address in a, address in b, bytes) for the bytes of two lists, until one ends.
template <class Move>
void for_each_pair(std::span<const Piece> a, std::span<const Piece> b, Move move) {
  Walk in_a(a);
  Walk in_b(b);
  while (!in_a.at_end() && !in_b.at_end()) {
    const Piece here = in_a.rest();
    const Piece there = in_b.rest();
    const std::uint64_t len_bytes = std::min(here.len_bytes, there.len_bytes);
    move(here.address, there.address, len_bytes);
    in_a.advance(len_bytes);
    in_b.advance(len_bytes);
  }
}

}  // namespace shima::lapi
