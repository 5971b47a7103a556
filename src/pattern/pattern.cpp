#include "pattern/pattern.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>

#include "base/units.h"
#include "pattern/cursor.h"

namespace shima {
namespace {

using Kind = PatternNode::Kind;
constexpr std::int64_t max_offset = std::int64_t{1} << 62;
constexpr std::uint64_t most_code_bytes = std::uint64_t{1} << 48;  // shared subtrees count often

std::uint64_t magnitude(std::int64_t value) {
  return value < 0 ? 0 - as_unsigned(value) : as_unsigned(value);
}

std::uint8_t depth_above(std::uint8_t depth) {
  return depth == 255 ? depth : static_cast<std::uint8_t>(depth + 1);
}

std::uint64_t saturating_mul(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::uint64_t>::max()
                                                : product;
}

// Whether the patterns differ only in where they begin. Recognizes only copies and single pieces,
// which is enough.
bool same_shape(const Pattern& a, const Pattern& b) {
  if (a.node() == b.node()) return true;
  return a.is_contiguous() && b.is_contiguous() && a.len_bytes() == b.len_bytes();
}

// Joins neighbours in data order that are also neighbours in offset order.
std::vector<Pattern> join_adjacent(std::vector<Pattern> children) {
  std::vector<Pattern> joined;
  joined.reserve(children.size());
  for (Pattern& child : children) {
    if (child.empty()) continue;
    if (!joined.empty() && joined.back().is_contiguous() && child.is_contiguous() &&
        joined.back().highest() == child.lowest()) {
      const std::int64_t start = joined.back().lowest();
      joined.back() =
          Pattern::contiguous(joined.back().len_bytes() + child.len_bytes()).shifted(start);
    } else {
      joined.push_back(std::move(child));
    }
  }
  return joined;
}

// Whether the children are one shape at equal distances; two or more children.
bool is_regular(const std::vector<Pattern>& children) {
  const std::int64_t step = children[1].origin() - children[0].origin();
  for (std::size_t i = 1; i < children.size(); ++i) {
    if (!same_shape(children[i], children[0])) return false;
    if (children[i].origin() - children[i - 1].origin() != step) return false;
  }
  return true;
}

bool is_regular(std::span<const std::int64_t> offsets, std::span<const std::uint64_t> lens_bytes) {
  const std::int64_t step = offsets[1] - offsets[0];
  for (std::size_t i = 1; i < offsets.size(); ++i)
    if (lens_bytes[i] != lens_bytes[0] || offsets[i] - offsets[i - 1] != step) return false;
  return true;
}

PieceCollector collect(const std::vector<Pattern>& contiguous_children) {
  PieceCollector pieces;
  pieces.reserve(contiguous_children.size());
  for (const Pattern& child : contiguous_children) pieces.add(child.lowest(), child.len_bytes());
  return pieces;
}

// Serials for all nodes whose code is longer than a message's own memory should hold.
void identify(PatternNode& node) {
  constexpr std::uint64_t long_code_bytes = 512;
  static std::atomic<std::uint64_t> last = 0;
  if (node.code_bytes > long_code_bytes) node.serial = ++last;
}

void derive_indexed(PatternNode& node) {
  node.lowest = max_offset;
  node.highest = -max_offset;
  node.piece_count = 0;
  std::int64_t previous_end = -max_offset;
  std::uint8_t below = 0;
  node.first_bytes.reserve(node.children.size());
  for (const Pattern& child : node.children) {
    node.first_bytes.push_back(node.len_bytes);
    node.len_bytes += child.len_bytes();
    node.lowest = std::min(node.lowest, child.lowest());
    node.highest = std::max(node.highest, child.highest());
    node.ordered = node.ordered && child.ordered() && child.lowest() >= previous_end;
    previous_end = child.highest();
    node.granule_bytes =
        std::gcd(node.granule_bytes, std::gcd(child.granule_bytes(), magnitude(child.origin())));
    node.piece_count += child.piece_count();
    node.code_bytes = std::min(node.code_bytes + child.node()->code_bytes + 16, most_code_bytes);
    below = std::max(below, child.node()->depth);
  }
  node.depth = depth_above(below);
  identify(node);
}

}  // namespace

Pattern Pattern::contiguous(std::uint64_t len_bytes) {
  if (len_bytes == 0) return {};
  auto node = std::make_shared<PatternNode>();
  node->len_bytes = len_bytes;
  node->highest = as_signed(len_bytes);
  node->granule_bytes = len_bytes;
  return {0, std::move(node)};
}

Pattern Pattern::strided(std::uint64_t count, std::int64_t stride_bytes, const Pattern& child) {
  if (count == 0 || child.empty()) return {};
  if (count == 1) return child;
  const PatternNode& below = *child.node();
  if (below.kind == Kind::contiguous && stride_bytes == as_signed(below.len_bytes))
    return contiguous(count * below.len_bytes).shifted(child.origin());
  std::int64_t below_extent = 0;
  if (below.kind == Kind::strided &&
      !__builtin_mul_overflow(as_signed(below.count), below.stride_bytes, &below_extent) &&
      stride_bytes == below_extent)
    return strided(count * below.count, below.stride_bytes, below.child).shifted(child.origin());

  auto node = std::make_shared<PatternNode>();
  node->kind = Kind::strided;
  node->count = count;
  node->stride_bytes = stride_bytes;
  node->child = child.shifted(-child.origin());
  node->len_bytes = count * below.len_bytes;
  const std::int64_t last = as_signed(count - 1) * stride_bytes;
  node->lowest = below.lowest + std::min<std::int64_t>(0, last);
  node->highest = below.highest + std::max<std::int64_t>(0, last);
  node->ordered = below.ordered && stride_bytes >= below.highest - below.lowest;
  node->depth = depth_above(below.depth);
  node->granule_bytes = std::gcd(below.granule_bytes, magnitude(stride_bytes));
  node->piece_count = saturating_mul(count, below.piece_count);
  node->code_bytes = below.code_bytes + 32;
  identify(*node);
  return {child.origin(), std::move(node)};
}

Pattern Pattern::indexed(std::vector<Pattern> children) {
  if (std::ranges::all_of(
          children, [](const Pattern& child) { return child.empty() || child.is_contiguous(); }))
    return list(collect(children));
  children = join_adjacent(std::move(children));
  if (children.size() == 1) return children.front();
  if (is_regular(children)) {
    const std::int64_t step = children[1].origin() - children[0].origin();
    return strided(children.size(), step, children.front());
  }
  const std::int64_t origin = children.front().origin();
  for (Pattern& child : children) child.origin_ -= origin;
  auto node = std::make_shared<PatternNode>();
  node->kind = Kind::indexed;
  node->children = std::move(children);
  derive_indexed(*node);
  return {origin, std::move(node)};
}

Pattern Pattern::list(std::span<const std::int64_t> displacements,
                      std::span<const std::uint64_t> lens_bytes) {
  PieceCollector pieces;
  pieces.reserve(displacements.size());
  for (std::size_t i = 0; i < displacements.size(); ++i)
    pieces.add(displacements[i], lens_bytes[i]);
  return list(std::move(pieces));
}

Pattern Pattern::list(PieceCollector pieces) {
  std::vector<std::int64_t>& offsets = pieces.offsets();
  const std::vector<std::uint64_t>& lens_bytes = pieces.lens_bytes();
  if (offsets.empty()) return {};
  const std::int64_t origin = offsets.front();
  if (offsets.size() == 1) return contiguous(lens_bytes.front()).shifted(origin);
  if (is_regular(offsets, lens_bytes))
    return strided(offsets.size(), offsets[1] - origin, contiguous(lens_bytes.front()))
        .shifted(origin);
  for (std::int64_t& offset : offsets) offset -= origin;
  return list(PieceList::make(offsets, lens_bytes)).shifted(origin);
}

Pattern Pattern::list(PieceList pieces) {
  const PieceList::Facts facts = pieces.facts();
  auto node = std::make_shared<PatternNode>();
  node->kind = Kind::list;
  node->ordered = facts.ordered;
  node->len_bytes = facts.len_bytes;
  node->lowest = facts.lowest;
  node->highest = facts.highest;
  node->granule_bytes = facts.granule_bytes;
  node->piece_count = pieces.count();
  node->code_bytes = 8 + pieces.image().size();
  node->pieces = std::move(pieces);
  identify(*node);
  return {0, std::move(node)};
}

Pattern Pattern::tiled(const Pattern& tile, std::int64_t extent_bytes) {
  if (tile.empty()) return {};
  const std::uint64_t limit = as_unsigned(max_offset);
  // Seen from both origins: the user's and the node's own, from which the decoder counts.
  const PatternNode& node = *tile.node();
  const std::uint64_t tile_reach = std::max({magnitude(tile.lowest()), magnitude(tile.highest()),
                                             magnitude(node.lowest), magnitude(node.highest)});
  const std::uint64_t room = limit - std::min(limit, tile_reach);
  const std::uint64_t by_offset = extent_bytes == 0 ? limit : room / magnitude(extent_bytes);
  const std::uint64_t count = std::min(by_offset, limit / tile.len_bytes());
  return strided(std::max<std::uint64_t>(count, 1), extent_bytes, tile);
}

Pattern Pattern::uncounted() const {
  return {origin_, std::shared_ptr<const PatternNode>(std::shared_ptr<const void>{}, node_.get())};
}

Pattern Pattern::shifted(std::int64_t displacement) const {
  return empty() ? Pattern{} : Pattern{origin_ + displacement, node_};
}

std::uint64_t Pattern::len_bytes() const { return empty() ? 0 : node_->len_bytes; }
int Pattern::depth() const { return empty() ? 0 : node_->depth; }
std::int64_t Pattern::lowest() const { return empty() ? 0 : origin_ + node_->lowest; }
std::int64_t Pattern::highest() const { return empty() ? 0 : origin_ + node_->highest; }
bool Pattern::ordered() const { return empty() || node_->ordered; }
bool Pattern::is_contiguous() const { return !empty() && node_->kind == Kind::contiguous; }
std::uint64_t Pattern::granule_bytes() const { return empty() ? 0 : node_->granule_bytes; }
std::uint64_t Pattern::piece_count() const { return empty() ? 0 : node_->piece_count; }

namespace {

// For an unordered slice: the bounds of all repetitions at the root that it touches, so that a
// short slice of an unbounded pattern has narrow bounds.
Bounds loose_bounds_of(const Slice& slice) {
  const PatternNode& node = *slice.pattern.node();
  const std::int64_t base = slice.base + slice.pattern.origin();
  if (node.kind != Kind::strided) return {base + node.lowest, base + node.highest};
  const PatternNode& below = *node.child.node();
  const std::int64_t first = as_signed(slice.first_byte / below.len_bytes) * node.stride_bytes;
  const std::uint64_t last_byte = slice.first_byte + slice.len_bytes - 1;
  const std::int64_t last = as_signed(last_byte / below.len_bytes) * node.stride_bytes;
  return {base + std::min(first, last) + below.lowest,
          base + std::max(first, last) + below.highest};
}

}  // namespace

Bounds bounds_of(const Slice& slice) {
  if (slice.len_bytes == 0) return {};
  if (slice.pattern.is_contiguous()) {
    const std::int64_t lowest = slice.base + slice.pattern.lowest() + as_signed(slice.first_byte);
    return {lowest, lowest + as_signed(slice.len_bytes)};
  }
  if (!slice.pattern.ordered()) return loose_bounds_of(slice);
  Cursor cursor(slice);
  const std::int64_t lowest = cursor.strip().offset;
  cursor.seek_byte(slice.len_bytes - 1);
  return {lowest, cursor.strip().offset + 1};
}

}  // namespace shima
