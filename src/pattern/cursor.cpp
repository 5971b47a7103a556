#include "pattern/cursor.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/units.h"

namespace shima {
namespace {

using Kind = PatternNode::Kind;

// The first repetition of a strided node at `base` that reaches beyond `offset`.
std::uint64_t first_repetition_beyond(const PatternNode& node, std::int64_t base,
                                      std::int64_t offset) {
  const std::int64_t past_first = offset - (base + node.child.highest());
  if (past_first < 0 || node.stride_bytes <= 0) return 0;
  return std::min(as_unsigned(past_first / node.stride_bytes) + 1, node.count - 1);
}

std::uint64_t first_child_beyond(const PatternNode& node, std::int64_t base, std::int64_t offset) {
  const auto found = std::ranges::partition_point(
      node.children, [&](const Pattern& child) { return base + child.highest() <= offset; });
  return static_cast<std::uint64_t>(found - node.children.begin());
}

std::uint64_t child_of_byte(const PatternNode& node, std::uint64_t byte) {
  const auto found = std::ranges::upper_bound(node.first_bytes, byte);
  return static_cast<std::uint64_t>(found - node.first_bytes.begin()) - 1;
}

// As above, for a child from `from` on; fast if it is that child.
std::uint64_t later_child_of_byte(const PatternNode& node, std::uint64_t from, std::uint64_t byte) {
  const bool is_first = from + 1 == node.first_bytes.size() || byte < node.first_bytes[from + 1];
  return is_first ? from : child_of_byte(node, byte);
}

}  // namespace

Cursor::Cursor(Slice slice) : slice_(std::move(slice)) {
  assert(slice_.pattern.depth() <= Pattern::max_depth);
  assert(slice_.first_byte <= slice_.pattern.len_bytes() &&
         slice_.len_bytes <= slice_.pattern.len_bytes() - slice_.first_byte);
  end_byte_ = slice_.first_byte + slice_.len_bytes;
  byte_ = slice_.first_byte;
  if (!done()) seek_byte(0);
}

void Cursor::enter(const PatternNode* node, std::int64_t base) {
  path_[static_cast<std::size_t>(depth_++)] = {node, base, 0};
}

void Cursor::enter_contiguous() {
  const Level& leaf = path_[static_cast<std::size_t>(depth_ - 1)];
  piece_offset_ = leaf.base;
  piece_len_ = leaf.node->len_bytes;
  is_repeated_ =
      depth_ >= 2 && path_[static_cast<std::size_t>(depth_ - 2)].node->kind == Kind::strided;
}

void Cursor::seek_byte(std::uint64_t byte) {
  byte_ = slice_.first_byte + std::min(byte, slice_.len_bytes);
  if (done()) return;
  depth_ = 0;
  enter(slice_.pattern.node(), slice_.base + slice_.pattern.origin());
  descend_to_byte(byte_);
}

// From the deepest level entered so far down to the piece that holds a byte of that level.
void Cursor::descend_to_byte(std::uint64_t byte_in_node) {
  for (;;) {
    Level& level = path_[static_cast<std::size_t>(depth_ - 1)];
    const PatternNode& node = *level.node;
    if (node.kind == Kind::contiguous) {
      enter_contiguous();
      within_ = byte_in_node;
      return;
    }
    if (node.kind == Kind::list) {
      is_repeated_ = false;
      enter_piece(level, byte_in_node == 0 ? 0 : node.pieces.piece_of_byte(byte_in_node));
      within_ = byte_in_node - node.pieces.first_byte(level.index);
      return;
    }
    if (node.kind == Kind::strided) {
      const std::uint64_t len = node.child.node()->len_bytes;
      level.index = byte_in_node < len ? 0 : byte_in_node / len;
      byte_in_node -= level.index * len;
      enter(node.child.node(), level.base + as_signed(level.index) * node.stride_bytes);
    } else {
      level.index = byte_in_node == 0 ? 0 : child_of_byte(node, byte_in_node);
      byte_in_node -= node.first_bytes[level.index];
      const Pattern& child = node.children[level.index];
      enter(child.node(), level.base + child.origin());
    }
  }
}

void Cursor::seek_offset(std::int64_t offset) {
  if (slice_.len_bytes == 0) return;
  if (offset >= slice_.base + slice_.pattern.highest()) {
    byte_ = end_byte_;
    return;
  }
  depth_ = 0;
  enter(slice_.pattern.node(), slice_.base + slice_.pattern.origin());
  descend_to_offset(offset);
  byte_ = std::min(byte_of_path(), end_byte_);
  if (byte_ < slice_.first_byte) seek_byte(0);
}

void Cursor::descend_to_offset(std::int64_t offset) {
  for (;;) {
    Level& level = path_[static_cast<std::size_t>(depth_ - 1)];
    const PatternNode& node = *level.node;
    if (node.kind == Kind::contiguous) {
      enter_contiguous();
      within_ = as_unsigned(std::max<std::int64_t>(offset - level.base, 0));
      return;
    }
    if (node.kind == Kind::list) {
      is_repeated_ = false;
      enter_piece(level, node.pieces.first_beyond(offset - level.base));
      within_ = as_unsigned(std::max<std::int64_t>(offset - piece_offset_, 0));
      return;
    }
    if (node.kind == Kind::strided) {
      level.index = first_repetition_beyond(node, level.base, offset);
      enter(node.child.node(), level.base + as_signed(level.index) * node.stride_bytes);
    } else {
      level.index = first_child_beyond(node, level.base, offset);
      const Pattern& child = node.children[level.index];
      enter(child.node(), level.base + child.origin());
    }
  }
}

std::uint64_t Cursor::byte_of_path() const {
  const Level& leaf = path_[static_cast<std::size_t>(depth_ - 1)];
  std::uint64_t byte = within_;
  if (leaf.node->kind == Kind::list) byte += leaf.node->pieces.first_byte(leaf.index);
  for (int i = 0; i + 1 < depth_; ++i) {
    const Level& level = path_[static_cast<std::size_t>(i)];
    byte += level.node->kind == Kind::strided ? level.index * level.node->child.len_bytes()
                                              : level.node->first_bytes[level.index];
  }
  return byte;
}

// The current piece is passed, and `within_` counts from its start to the next position. Climbs to
// the deepest level that holds that byte, and descends to it. Each level is left by one comparison,
// so that a long step costs no more than the depth.
void Cursor::climb() {
  std::uint64_t rest = within_;  // counted from the start of the level just left
  Level& leaf = path_[static_cast<std::size_t>(depth_ - 1)];
  if (leaf.node->kind == Kind::list) {
    rest += leaf.node->pieces.first_byte(leaf.index);
    if (rest < leaf.node->len_bytes) return descend_to_byte(rest);
  }
  for (--depth_; depth_ > 0; --depth_) {
    Level& level = path_[static_cast<std::size_t>(depth_ - 1)];
    const PatternNode& node = *level.node;
    if (node.kind == Kind::strided) {
      const std::uint64_t len = node.child.node()->len_bytes;
      if (rest < (node.count - level.index) * len) {
        const std::uint64_t passed = rest < 2 * len ? 1 : rest / len;
        level.index += passed;
        enter(node.child.node(), level.base + as_signed(level.index) * node.stride_bytes);
        return descend_to_byte(rest - passed * len);
      }
      rest += level.index * len;
      continue;
    }
    rest += node.first_bytes[level.index];
    if (rest < node.len_bytes) {
      level.index = later_child_of_byte(node, level.index + 1, rest);
      const Pattern& child = node.children[level.index];
      enter(child.node(), level.base + child.origin());
      return descend_to_byte(rest - node.first_bytes[level.index]);
    }
  }
}

Strip clip_below(Strip strip, std::int64_t limit) {
  if (strip.offset >= limit) return {};
  const std::int64_t len = as_signed(strip.len_bytes);
  const std::int64_t last_end =
      strip.offset + as_signed(strip.count - 1) * strip.stride_bytes + len;
  if (last_end <= limit) return strip;
  if (strip.offset + len > limit) {
    strip.len_bytes = as_unsigned(limit - strip.offset);
    strip.count = 1;
    return strip;
  }
  strip.count = as_unsigned((limit - strip.offset - len) / strip.stride_bytes) + 1;
  return strip;
}

}  // namespace shima
