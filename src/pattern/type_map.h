// The meaning of a datatype: its bytes, their order, and the distance of its repetitions.
//
// The combinators below mirror MPI's type constructors one to one and build Patterns instead of
// lists, so a datatype's TypeMap is as small as its description. Besides the bytes they keep a
// property that MPI's rules for file views need and a Pattern does not record: whether
// displacements never decrease in typemap order. Elements that follow each other without a gap
// count as one block, as in MPICH, so that blocks may overlap in a view that is only read. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "pattern/pattern.h"

namespace shima {

struct TypeMap {
  Pattern pattern;  // relative to the type's address 0
  // As the constructors make them, without padding at the end for alignment.
  std::int64_t lb = 0;
  std::int64_t extent = 0;
  // Displacements of the first and the last block in typemap order.
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool nondecreasing = true;
  // The pattern repeated without end, once per extent.
  Pattern tiled;

  [[nodiscard]] std::uint64_t size() const { return pattern.len_bytes(); }
  // One piece at 0 that the next repetition continues.
  [[nodiscard]] bool is_dense() const {
    return pattern.is_contiguous() && pattern.lowest() == 0 && extent == pattern.highest();
  }
};

namespace typemap {

// One basic element of `size` bytes.
[[nodiscard]] TypeMap element(std::uint64_t size);
[[nodiscard]] TypeMap shift(TypeMap map, std::int64_t displacement);
// `count` copies, `stride` bytes apart.
[[nodiscard]] Result<TypeMap> repeat(const TypeMap& map, std::int64_t count, std::int64_t stride);
// Parts at individual displacements, one after the other in typemap order.
[[nodiscard]] Result<TypeMap> sequence(std::vector<TypeMap> parts);
// Blocks of `lens[i]` copies of a type at byte displacements.
[[nodiscard]] Result<TypeMap> blocks(const TypeMap& map, std::span<const std::int64_t> lens,
                                     std::span<const std::int64_t> displacements);

struct Subarray {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> subsizes;
  std::vector<std::int64_t> starts;
  bool c_order = true;  // the last dimension varies fastest
};
[[nodiscard]] Result<TypeMap> subarray(const TypeMap& map, const Subarray& shape);

enum class Distribution : std::uint8_t { none, block, cyclic };

struct Darray {
  static constexpr std::int64_t default_argument = -1;

  std::int64_t rank = 0;
  std::vector<std::int64_t> sizes;
  std::vector<Distribution> distributions;
  std::vector<std::int64_t> arguments;  // the block lengths
  std::vector<std::int64_t> processes;
  bool c_order = true;
};
[[nodiscard]] Result<TypeMap> darray(const TypeMap& map, const Darray& shape);

}  // namespace typemap
}  // namespace shima
