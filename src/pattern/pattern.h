// WHICH bytes: a Pattern describes a set of bytes of a file or of memory, in data order.
//
// It is a tree of four shapes: contiguous(n), strided(count, stride, child), indexed(children, each
// with its own displacement), and list(pieces), which is what indexed becomes if all children are
// contiguous (pattern/piece_list.h). PFF's stride and list requests, MPI datatypes and views all
// normalise to it. A Pattern is never flattened: its size in memory and on the wire is the size of
// its description, whatever the number of pieces. Constructors bring it to a normal
// form, so that equal layouts written differently (a vector of adjacent blocks, a subarray that
// covers whole rows) become the same small tree.
//
// Offsets are relative to an origin that the user of the Pattern chooses: a file offset or an
// address. Immutable; copies share the tree; safe to use from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "pattern/piece_list.h"

namespace shima {

struct PatternNode;

class Pattern {
 public:
  // The empty pattern.
  Pattern() = default;

  [[nodiscard]] static Pattern contiguous(std::uint64_t len_bytes);
  // `child` repeated `count` times, `stride_bytes` apart.
  [[nodiscard]] static Pattern strided(std::uint64_t count, std::int64_t stride_bytes,
                                       const Pattern& child);
  // The children one after the other in data order, each at its own displacement (see shifted()).
  [[nodiscard]] static Pattern indexed(std::vector<Pattern> children);
  // Pieces of `lens_bytes[i]` at `displacements[i]`: PFF's list request. The spans have one length.
  [[nodiscard]] static Pattern list(std::span<const std::int64_t> displacements,
                                    std::span<const std::uint64_t> lens_bytes);
  [[nodiscard]] static Pattern list(PieceCollector pieces);
  // A list as it was decoded, in the form that it has; not empty.
  [[nodiscard]] static Pattern list(PieceList pieces);
  // `tile` repeated every `extent_bytes`, as often as 62 bits of offset allow: an MPI file view.
  [[nodiscard]] static Pattern tiled(const Pattern& tile, std::int64_t extent_bytes);

  // The same pattern without a count of its users, so that copies cost no atomic operation; the
  // caller keeps this one for as long as any copy lives.
  [[nodiscard]] Pattern uncounted() const;
  // The same bytes, moved by `displacement`.
  [[nodiscard]] Pattern shifted(std::int64_t displacement) const;

  [[nodiscard]] bool empty() const { return node_ == nullptr; }
  // The number of data bytes; bytes that occur twice count twice.
  [[nodiscard]] std::uint64_t len_bytes() const;
  // The lowest offset used and one past the highest; 0 and 0 if empty.
  [[nodiscard]] std::int64_t lowest() const;
  [[nodiscard]] std::int64_t highest() const;
  // Whether data order is offset order and no byte occurs twice.
  [[nodiscard]] bool ordered() const;
  [[nodiscard]] bool is_contiguous() const;
  // A common divisor of all piece lengths and of all distances between pieces; 0 if empty.
  [[nodiscard]] std::uint64_t granule_bytes() const;
  // The number of contiguous pieces, adjacent ones counted apart; saturates.
  [[nodiscard]] std::uint64_t piece_count() const;
  [[nodiscard]] std::int64_t origin() const { return origin_; }
  [[nodiscard]] const PatternNode* node() const { return node_.get(); }

  // The levels of the tree; 0 if empty. Code that builds a Pattern from an external description
  // checks that it is at most max_depth: deeper trees can be made, but neither walked nor decoded.
  [[nodiscard]] int depth() const;
  static constexpr int max_depth = 64;

 private:
  Pattern(std::int64_t origin, std::shared_ptr<const PatternNode> node)
      : origin_(origin), node_(std::move(node)) {}

  std::int64_t origin_ = 0;
  std::shared_ptr<const PatternNode> node_;
};

// One level of a Pattern. All derived values are computed once, at construction. Offset 0 of a node
// is its first byte in data order, so that the sum of origins at any level stays within the offsets
// in use.
struct PatternNode {
  enum class Kind : std::uint8_t { contiguous, strided, indexed, list };

  Kind kind = Kind::contiguous;
  bool ordered = true;
  std::uint8_t depth = 1;  // saturates
  std::uint64_t len_bytes = 0;
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
  std::uint64_t granule_bytes = 0;
  std::uint64_t piece_count = 1;
  std::uint64_t count = 1;                 // strided
  std::int64_t stride_bytes = 0;           // strided
  Pattern child;                           // strided; its origin is 0
  std::vector<Pattern> children;           // indexed; the first one's origin is 0
  std::vector<std::uint64_t> first_bytes;  // indexed: data bytes before each child
  PieceList pieces;                        // list
  std::uint64_t code_bytes = 16;           // about what its code takes (pattern/codec.h)
  // Identifies the node in this process for ever if its code is long; otherwise 0.
  std::uint64_t serial = 0;
};

// Consecutive data bytes of a Pattern placed at `base`: one request on a file or in memory.
struct Slice {
  Pattern pattern;
  std::int64_t base = 0;
  std::uint64_t first_byte = 0;
  std::uint64_t len_bytes = 0;
};

// The lowest offset of a Slice and one past the highest; empty for an empty Slice. Exact if the
// pattern is ordered.
struct Bounds {
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
};
[[nodiscard]] Bounds bounds_of(const Slice& slice);

}  // namespace shima
