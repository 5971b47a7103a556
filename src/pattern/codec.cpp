#include "pattern/codec.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/units.h"

namespace shima {
namespace {

using Kind = PatternNode::Kind;
constexpr std::uint64_t no_node = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t max_bytes = std::uint64_t{1} << 62;
constexpr std::size_t word_bytes = sizeof(std::uint64_t);
constexpr std::size_t few_nodes = 16;  // are searched one by one

std::size_t words_of(const PatternNode& node) {
  switch (node.kind) {
    case Kind::contiguous:
      return 2;
    case Kind::strided:
      return 4;
    case Kind::indexed:
      return 2 + 2 * node.children.size();
    default:
      return 1 + node.pieces.image().size() / word_bytes;
  }
}

class Writer {
 public:
  explicit Writer(std::span<std::byte>& out) : out_(out) {}

  template <class... Words>
  void words(Words... values) {
    (bytes(std::as_bytes(std::span(&values, 1))), ...);
  }
  void bytes(std::span<const std::byte> bytes) {
    std::memcpy(out_.data(), bytes.data(), bytes.size());
    out_ = out_.subspan(bytes.size());
  }

 private:
  std::span<std::byte>& out_;
};

class Reader {
 public:
  Reader(std::span<const std::byte>& in, std::shared_ptr<const void> owner)
      : in_(in), owner_(std::move(owner)) {}

  [[nodiscard]] bool ok() const { return ok_; }
  std::uint64_t word() {
    std::uint64_t value = 0;
    if (in_.size() < sizeof value) {
      ok_ = false;
      return 0;
    }
    std::memcpy(&value, in_.data(), sizeof value);
    in_ = in_.subspan(sizeof value);
    return value;
  }
  std::int64_t signed_word() { return as_signed(word()); }
  // A displacement small enough that sums of several stay in range.
  std::int64_t displacement() {
    const std::int64_t value = signed_word();
    require(value > -as_signed(max_bytes) && value < as_signed(max_bytes));
    return value;
  }
  void require(bool condition) { ok_ = ok_ && condition; }

  Pattern node(const std::vector<Pattern>& table) {
    switch (word()) {
      case 0:
        return contiguous();
      case 1:
        return strided(table);
      case 2:
        return indexed(table);
      case 3:
        return list();
      default:
        ok_ = false;
        return {};
    }
  }
  Pattern child(const std::vector<Pattern>& table) {
    const std::uint64_t place = word();
    require(place < table.size());
    return ok_ ? table[place] : Pattern{};
  }

 private:
  Pattern contiguous() {
    const std::uint64_t len = word();
    require(len > 0 && len <= max_bytes);
    return ok_ ? Pattern::contiguous(len) : Pattern{};
  }
  Pattern strided(const std::vector<Pattern>& table) {
    const std::uint64_t count = word();
    const std::int64_t stride = displacement();
    const Pattern below = child(table);
    if (!ok_) return {};
    require(count > 0 && fits(count, below.len_bytes()) &&
            fits(count - 1, as_unsigned(std::abs(stride))));
    if (!ok_) return {};
    const std::int64_t last = as_signed(count - 1) * stride;
    require(below.depth() < Pattern::max_depth && fits_moved(below, last));
    return ok_ ? Pattern::strided(count, stride, below) : Pattern{};
  }
  Pattern indexed(const std::vector<Pattern>& table) {
    const std::uint64_t count = word();
    require(count > 0 && count <= in_.size() / (2 * sizeof(std::uint64_t)));
    std::vector<Pattern> children;
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; ok_ && i < count; ++i) {
      const Pattern below = child(table);
      const std::int64_t origin = displacement();
      if (!ok_) break;
      require(below.depth() < Pattern::max_depth && fits_moved(below, origin));
      sum += below.len_bytes();
      require(sum <= max_bytes);
      if (ok_) children.push_back(below.shifted(origin));
    }
    return ok_ ? Pattern::indexed(std::move(children)) : Pattern{};
  }
  Pattern list() {
    auto pieces = ok_ ? PieceList::decode(in_, owner_) : Result<PieceList>{};
    require(pieces.has_value());
    return ok_ ? Pattern::list(*std::move(pieces)) : Pattern{};
  }
  static bool fits(std::uint64_t count, std::uint64_t bytes) {
    std::uint64_t product = 0;
    return !__builtin_mul_overflow(count, bytes, &product) && product <= max_bytes;
  }
  // Whether a pattern of the table, each of which fits, still fits when moved.
  static bool fits_moved(const Pattern& pattern, std::int64_t displacement) {
    const std::int64_t limit = as_signed(max_bytes);
    return displacement >= 0 ? pattern.highest() <= limit - displacement
                             : pattern.lowest() > -limit - displacement;
  }

  std::span<const std::byte>& in_;
  std::shared_ptr<const void> owner_;
  bool ok_ = true;
};

std::unexpected<Error> damaged() {
  return fail(Code::internal, "decoding a pattern: the description is damaged");
}

// Whether all offsets of a pattern placed at `base` are in range.
bool may_lie_at(const Pattern& pattern, std::int64_t base) {
  std::int64_t sum = 0;
  return !__builtin_add_overflow(base, pattern.lowest(), &sum) &&
         !__builtin_add_overflow(base, pattern.highest(), &sum);
}

}  // namespace

PatternCode::PatternCode(const Pattern& pattern) : pattern_(pattern), len_bytes_(3 * word_bytes) {
  if (!pattern.empty()) add(pattern.node());
}

void PatternCode::add(const PatternNode* node) {
  if (place_of(node)) return;
  if (node->kind == Kind::strided) add(node->child.node());
  for (const Pattern& child : node->children) add(child.node());
  nodes_.push_back(node);
  len_bytes_ += words_of(*node) * word_bytes;
  if (nodes_.size() <= few_nodes) return;
  for (std::size_t i = places_.size(); i < nodes_.size(); ++i) places_.emplace(nodes_[i], i);
}

std::optional<std::uint64_t> PatternCode::place_of(const PatternNode* node) const {
  if (nodes_.size() > few_nodes) {
    const auto known = places_.find(node);
    return known == places_.end() ? std::nullopt : std::optional(known->second);
  }
  const auto known = std::ranges::find(nodes_, node);
  return known == nodes_.end() ? std::nullopt : std::optional(as_unsigned(known - nodes_.begin()));
}

void PatternCode::write(std::span<std::byte>& out) const {
  Writer writer(out);
  writer.words(std::uint64_t{nodes_.size()});
  for (const PatternNode* node : nodes_) {
    writer.words(static_cast<std::uint64_t>(node->kind));
    if (node->kind == Kind::contiguous) {
      writer.words(node->len_bytes);
    } else if (node->kind == Kind::strided) {
      writer.words(node->count, node->stride_bytes, place_of(node->child.node()).value_or(no_node));
    } else if (node->kind == Kind::list) {
      writer.bytes(node->pieces.image());
    } else {
      writer.words(std::uint64_t{node->children.size()});
      for (const Pattern& child : node->children)
        writer.words(place_of(child.node()).value_or(no_node), child.origin());
    }
  }
  writer.words(nodes_.empty() ? no_node : std::uint64_t{nodes_.size() - 1}, pattern_.origin());
}

Result<Pattern> decode_pattern(std::span<const std::byte>& in, std::shared_ptr<const void> owner) {
  Reader reader(in, std::move(owner));
  const std::uint64_t nodes = reader.word();
  std::vector<Pattern> table;
  for (std::uint64_t i = 0; reader.ok() && i < nodes; ++i) table.push_back(reader.node(table));
  const std::uint64_t root = reader.word();
  reader.require(root == no_node ? nodes == 0 : root < table.size());
  const std::int64_t origin = reader.displacement();
  if (!reader.ok()) return damaged();
  return root == no_node ? Pattern{} : table[root].shifted(origin);
}

Result<Slice> slice_at(const SlicePlace& place, Pattern pattern) {
  if (!may_lie_at(pattern, place.base) || place.first_byte > pattern.len_bytes() ||
      place.len_bytes > pattern.len_bytes() - place.first_byte)
    return damaged();
  return Slice{std::move(pattern), place.base, place.first_byte, place.len_bytes};
}

void encode(const Pattern& pattern, std::vector<std::byte>& out) {
  const PatternCode code(pattern);
  const std::size_t start = out.size();
  out.resize(start + code.len_bytes());
  std::span<std::byte> rest = std::span(out).subspan(start);
  code.write(rest);
}

void encode(const Slice& slice, std::vector<std::byte>& out) {
  encode(slice.pattern, out);
  const SlicePlace place = place_of(slice);
  const auto bytes = std::as_bytes(std::span(&place, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

Result<Slice> decode(std::span<const std::byte>& in, std::shared_ptr<const void> owner) {
  SHIMA_TRY_ASSIGN(Pattern pattern, decode_pattern(in, std::move(owner)));
  SlicePlace place;
  if (in.size() < sizeof place) return damaged();
  std::memcpy(&place, in.data(), sizeof place);
  in = in.subspan(sizeof place);
  return slice_at(place, std::move(pattern));
}

}  // namespace shima
