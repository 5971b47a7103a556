// The wire form of a Slice.
//
// A table of nodes, children before parents, each written once however often it is used; then the
// slice itself. All numbers are 64-bit words in host order (ranks of one job share it).
//
//   slice    = node_count { node } root origin base first_byte len_bytes
//   node     = 0 len_bytes | 1 count stride child | 2 n { child origin } | 3 image
//
// The image of a list is the one that it has in memory (pattern/piece_list.h): it is copied out,
// and on request used where it was received.
//
// A reader accepts only descriptions that the constructors could have made, so that a damaged one
// cannot cause unbounded recursion or sums that overflow.
#include <cstring>
#include <limits>
#include <unordered_map>

#include "base/units.h"
#include "pattern/pattern.h"

namespace shima {
namespace {

using Kind = PatternNode::Kind;
constexpr std::uint64_t no_node = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t max_bytes = std::uint64_t{1} << 62;

class Writer {
 public:
  explicit Writer(std::vector<std::byte>& out) : out_(out) {}

  void word(std::uint64_t value) {
    const auto at = out_.size();
    out_.resize(at + sizeof value);
    std::memcpy(out_.data() + at, &value, sizeof value);
  }
  void word(std::int64_t value) { word(as_unsigned(value)); }

  // Writes the subtree unless the table has it already; returns its place in the table.
  std::uint64_t node(const PatternNode* node) {
    if (const auto known = places_.find(node); known != places_.end()) return known->second;
    if (node->kind == Kind::contiguous) {
      begin(node);
      word(node->len_bytes);
    } else if (node->kind == Kind::strided) {
      const std::uint64_t child = this->node(node->child.node());
      begin(node);
      word(node->count);
      word(node->stride_bytes);
      word(child);
    } else if (node->kind == Kind::list) {
      begin(node);
      const auto image = node->pieces.image();
      out_.insert(out_.end(), image.begin(), image.end());
    } else {
      std::vector<std::uint64_t> places;
      places.reserve(node->children.size());
      for (const Pattern& child : node->children) places.push_back(this->node(child.node()));
      begin(node);
      word(std::uint64_t{node->children.size()});
      for (std::size_t i = 0; i < places.size(); ++i) {
        word(places[i]);
        word(node->children[i].origin());
      }
    }
    return places_.emplace(node, places_.size()).first->second;
  }

  [[nodiscard]] std::uint64_t nodes() const { return places_.size(); }

 private:
  void begin(const PatternNode* node) { word(static_cast<std::uint64_t>(node->kind)); }

  std::vector<std::byte>& out_;
  std::unordered_map<const PatternNode*, std::uint64_t> places_;
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

// Whether all offsets of a pattern placed at `base` are in range.
bool may_lie_at(const Pattern& pattern, std::int64_t base) {
  std::int64_t sum = 0;
  return !__builtin_add_overflow(base, pattern.lowest(), &sum) &&
         !__builtin_add_overflow(base, pattern.highest(), &sum);
}

}  // namespace

void encode(const Slice& slice, std::vector<std::byte>& out) {
  Writer writer(out);
  const std::size_t start = out.size();
  writer.word(std::uint64_t{0});
  const std::uint64_t root = slice.pattern.empty() ? no_node : writer.node(slice.pattern.node());
  const std::uint64_t nodes = writer.nodes();
  std::memcpy(out.data() + start, &nodes, sizeof nodes);
  writer.word(root);
  writer.word(slice.pattern.origin());
  writer.word(slice.base);
  writer.word(slice.first_byte);
  writer.word(slice.len_bytes);
}

Result<Slice> decode(std::span<const std::byte>& in, std::shared_ptr<const void> owner) {
  Reader reader(in, std::move(owner));
  const std::uint64_t nodes = reader.word();
  std::vector<Pattern> table;
  for (std::uint64_t i = 0; reader.ok() && i < nodes; ++i) table.push_back(reader.node(table));
  Slice slice;
  const std::uint64_t root = reader.word();
  reader.require(root == no_node ? nodes == 0 : root < table.size());
  const std::int64_t origin = reader.displacement();
  slice.base = reader.signed_word();
  slice.first_byte = reader.word();
  slice.len_bytes = reader.word();
  if (reader.ok() && root != no_node) slice.pattern = table[root].shifted(origin);
  reader.require(may_lie_at(slice.pattern, slice.base));
  reader.require(slice.first_byte <= slice.pattern.len_bytes() &&
                 slice.len_bytes <= slice.pattern.len_bytes() - slice.first_byte);
  if (!reader.ok()) return fail(Code::internal, "decoding a pattern: the description is damaged");
  return slice;
}

}  // namespace shima
