// Walking a Slice without flattening it.
//
// A Cursor has a position, one data byte, and the path from the root to the piece that holds it. It
// reports strips: a run of equal pieces at equal distances, so that copy loops and iovec builders
// work on many pieces per call. It seeks to the n-th data byte, and in ordered patterns to the
// first byte at or after an offset, in time proportional to the depth (and the logarithm of list
// lengths).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/units.h"
#include "pattern/pattern.h"

namespace shima {

// `count` pieces of `len_bytes`, the first at `offset`, each `stride_bytes` after the one before.
struct Strip {
  std::int64_t offset = 0;
  std::uint64_t len_bytes = 0;
  std::int64_t stride_bytes = 0;
  std::uint64_t count = 0;
};

// Whole pieces of a list, from `piece` up to `end`; none if they are equal.
struct ListRun {
  const PieceList* list = nullptr;
  std::int64_t base = 0;  // the place of the list's offset 0
  std::uint64_t piece = 0;
  std::uint64_t end = 0;

  [[nodiscard]] bool empty() const { return piece == end; }
  // The next piece.
  [[nodiscard]] std::int64_t offset() const { return base + list->offset(piece); }
  [[nodiscard]] std::uint64_t len_bytes() const { return list->len_bytes(piece); }
};

class Cursor {
 public:
  // Keeps a reference to the pattern of `slice`, which must contain the bytes of the slice and be
  // no deeper than Pattern::max_depth; starts at its first byte.
  explicit Cursor(Slice slice);

  [[nodiscard]] bool done() const { return byte_ >= end_byte_; }
  // The position, counted in data bytes from the start of the slice.
  [[nodiscard]] std::uint64_t byte() const { return byte_ - slice_.first_byte; }
  [[nodiscard]] std::uint64_t bytes_left() const { return end_byte_ - byte_; }
  // The pieces from here on that are equal and equally spaced; the first may be the rest of a
  // piece. Not to be called when done().
  [[nodiscard]] Strip strip() const;

  // The pieces from here on if they are in a list: a loop over them costs less than strip() and
  // advance() for each. The last ones may be beyond the end of the slice.
  [[nodiscard]] ListRun list_run() const;
  // Moves on to `run.piece`, `len_bytes` data bytes from here, where `run` was list_run() and the
  // slice does not end before.
  void leave_run(const ListRun& run, std::uint64_t len_bytes);

  // Moves on by `len_bytes` data bytes, at most to the end.
  void advance(std::uint64_t len_bytes);
  // Moves to a data byte of the slice.
  void seek_byte(std::uint64_t byte);
  // Moves to the first byte of the slice at or after `offset`. The pattern must be ordered.
  void seek_offset(std::int64_t offset);

 private:
  struct Level {
    const PatternNode* node;
    std::int64_t base;    // the place of the node's offset 0
    std::uint64_t index;  // which child or piece; unused on the contiguous level
  };

  void enter(const PatternNode* node, std::int64_t base);
  void descend_to_byte(std::uint64_t byte_in_node);
  void descend_to_offset(std::int64_t offset);
  [[nodiscard]] std::uint64_t byte_of_path() const;
  bool step_in_list();
  void enter_piece(Level& list, std::uint64_t piece);
  void enter_contiguous();
  void climb();

  Slice slice_;
  std::uint64_t byte_ = 0;
  std::uint64_t end_byte_ = 0;
  std::uint64_t within_ = 0;  // data bytes of the current piece already passed
  std::int64_t piece_offset_ = 0;
  std::uint64_t piece_len_ = 0;
  bool is_repeated_ = false;  // the current piece is the child of a strided level
  int depth_ = 0;
  std::array<Level, Pattern::max_depth> path_;  // from the root to the piece
};

// Inline like advance(): in lists of small pieces these two take most of the time besides copying.
inline Strip Cursor::strip() const {
  const std::uint64_t left = end_byte_ - byte_;
  const std::uint64_t piece = piece_len_ - within_;
  Strip strip{piece_offset_ + as_signed(within_), std::min(piece, left), as_signed(piece), 1};
  if (!is_repeated_ || within_ != 0 || left < piece) return strip;
  const Level& parent = path_[static_cast<std::size_t>(depth_ - 2)];
  strip.stride_bytes = parent.node->stride_bytes;
  strip.count = parent.node->count - parent.index;
  // A division per strip is expensive if strips are short; most end well before the slice does.
  if (strip.count * piece > left) strip.count = left / piece;
  return strip;
}

inline void Cursor::advance(std::uint64_t len_bytes) {
  const std::uint64_t step = std::min(len_bytes, end_byte_ - byte_);
  byte_ += step;
  within_ += step;
  if (byte_ < end_byte_ && within_ >= piece_len_ && !step_in_list()) climb();
}

inline ListRun Cursor::list_run() const {
  const Level& leaf = path_[static_cast<std::size_t>(depth_ - 1)];
  if (within_ != 0 || leaf.node->kind != PatternNode::Kind::list) return {};
  return {&leaf.node->pieces, leaf.base, leaf.index, leaf.node->pieces.count()};
}

inline void Cursor::leave_run(const ListRun& run, std::uint64_t len_bytes) {
  if (len_bytes == 0) return;
  // advance() from the last piece that was passed leaves the list where that is its last.
  Level& leaf = path_[static_cast<std::size_t>(depth_ - 1)];
  enter_piece(leaf, run.piece - 1);
  byte_ += len_bytes - piece_len_;
  advance(piece_len_);
}

// The most frequent step in lists: to the next piece.
inline bool Cursor::step_in_list() {
  Level& leaf = path_[static_cast<std::size_t>(depth_ - 1)];
  if (leaf.node->kind != PatternNode::Kind::list) return false;
  const std::uint64_t next = leaf.index + 1;
  const std::uint64_t rest = within_ - piece_len_;
  if (next >= leaf.node->pieces.count() || rest >= leaf.node->pieces.len_bytes(next)) return false;
  enter_piece(leaf, next);
  within_ = rest;
  return true;
}

inline void Cursor::enter_piece(Level& list, std::uint64_t piece) {
  list.index = piece;
  piece_offset_ = list.base + list.node->pieces.offset(piece);
  piece_len_ = list.node->pieces.len_bytes(piece);
}

// The part of a strip below `limit`: whole pieces, or the first bytes of one piece.
[[nodiscard]] Strip clip_below(Strip strip, std::int64_t limit);

// Calls visit(Strip) for the bytes of the slice from the cursor up to offset `limit`, and leaves
// the cursor at the first byte at or after it. The pattern must be ordered.
template <class Visit>
void for_each_strip_below(Cursor& cursor, std::int64_t limit, Visit visit) {
  while (!cursor.done()) {
    std::uint64_t passed_bytes = 0;
    ListRun run = cursor.list_run();
    for (; !run.empty(); ++run.piece) {
      const std::int64_t offset = run.offset();
      const std::uint64_t len_bytes = run.len_bytes();
      if (offset + as_signed(len_bytes) > limit || passed_bytes + len_bytes > cursor.bytes_left())
        break;
      visit(Strip{offset, len_bytes, as_signed(len_bytes), 1});
      passed_bytes += len_bytes;
    }
    cursor.leave_run(run, passed_bytes);
    if (cursor.done()) return;
    const Strip strip = clip_below(cursor.strip(), limit);
    if (strip.count == 0) return;
    visit(strip);
    cursor.advance(strip.len_bytes * strip.count);
  }
}

}  // namespace shima
