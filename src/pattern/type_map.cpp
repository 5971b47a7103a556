#include "pattern/type_map.h"

#include <algorithm>
#include <cstdlib>

#include "base/units.h"

namespace shima::typemap {
namespace {

constexpr std::int64_t max_bytes = std::int64_t{1} << 62;

// The dimensions from the one that varies fastest to the slowest.
std::vector<std::size_t> fastest_first(std::size_t dimensions, bool c_order) {
  std::vector<std::size_t> order(dimensions);
  for (std::size_t i = 0; i < dimensions; ++i) order[i] = c_order ? dimensions - 1 - i : i;
  return order;
}

// Element numbers first, first + step, ... in one dimension, in blocks of `block` and a shorter
// last.
struct Blocks {
  std::int64_t first = 0;
  std::int64_t block = 0;
  std::int64_t step = 0;
  std::int64_t full = 0;
  std::int64_t rest = 0;
};

Blocks block_distribution(std::int64_t size, std::int64_t processes, std::int64_t coordinate,
                          std::int64_t argument) {
  const std::int64_t block = argument > 0 ? argument : (size + processes - 1) / processes;
  const std::int64_t first = std::min(coordinate * block, size);
  return {.first = first, .rest = std::min(block, size - first)};
}

Blocks cyclic_distribution(std::int64_t size, std::int64_t processes, std::int64_t coordinate,
                           std::int64_t argument) {
  const std::int64_t block = argument > 0 ? argument : 1;
  const std::int64_t step = block * processes;
  const std::int64_t first = std::min(coordinate * block, size);
  const std::int64_t left = size - first;
  const std::int64_t full = left < block ? 0 : (left - block) / step + 1;
  const std::int64_t rest = std::clamp<std::int64_t>(left - full * step, 0, block);
  return {.first = first, .block = block, .step = step, .full = full, .rest = rest};
}

Blocks distribute(const Darray& shape, std::size_t dimension, std::int64_t coordinate) {
  const std::int64_t size = shape.sizes[dimension];
  const std::int64_t processes = shape.processes[dimension];
  const std::int64_t argument = shape.arguments[dimension];
  switch (shape.distributions[dimension]) {
    case Distribution::block:
      return block_distribution(size, processes, coordinate, argument);
    case Distribution::cyclic:
      return cyclic_distribution(size, processes, coordinate, argument);
    case Distribution::none:
      break;
  }
  return {.rest = size};
}

// The coordinates of a rank in the process grid, which MPI always numbers with the last dimension
// fastest.
std::vector<std::int64_t> coordinates_of(const Darray& shape) {
  std::vector<std::int64_t> coordinates(shape.processes.size());
  std::int64_t rank = shape.rank;
  for (std::size_t i = coordinates.size(); i-- > 0;) {
    coordinates[i] = rank % shape.processes[i];
    rank /= shape.processes[i];
  }
  return coordinates;
}

Result<TypeMap> spread(const TypeMap& map, const Blocks& blocks, std::int64_t stride) {
  std::vector<TypeMap> parts;
  if (blocks.full > 0) {
    SHIMA_TRY_ASSIGN(const TypeMap block, repeat(map, blocks.block, stride));
    SHIMA_TRY_ASSIGN(TypeMap all, repeat(block, blocks.full, blocks.step * stride));
    parts.push_back(shift(std::move(all), blocks.first * stride));
  }
  SHIMA_TRY_ASSIGN(TypeMap rest, repeat(map, blocks.rest, stride));
  parts.push_back(shift(std::move(rest), (blocks.first + blocks.full * blocks.step) * stride));
  return sequence(std::move(parts));
}

}  // namespace

TypeMap element(std::uint64_t size) {
  TypeMap map;
  map.pattern = Pattern::contiguous(size);
  map.extent = as_signed(size);
  return map;
}

TypeMap shift(TypeMap map, std::int64_t displacement) {
  map.pattern = map.pattern.shifted(displacement);
  map.lb += displacement;
  map.first += displacement;
  map.last += displacement;
  return map;
}

Result<TypeMap> repeat(const TypeMap& map, std::int64_t count, std::int64_t stride) {
  if (count <= 0 || map.pattern.empty()) return TypeMap{};
  std::int64_t distance = 0;
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(count - 1, stride, &distance) || distance > max_bytes ||
      distance < -max_bytes || __builtin_mul_overflow(count, as_signed(map.size()), &bytes) ||
      bytes > max_bytes)
    return fail(Code::bad_type, "the datatype spans more than 2^62 bytes");
  TypeMap repeated = map;
  repeated.pattern = Pattern::strided(as_unsigned(count), stride, map.pattern);
  repeated.lb = std::min(map.lb, map.lb + distance);
  repeated.extent = map.extent + std::abs(distance);
  repeated.last = map.last + distance;
  repeated.nondecreasing = map.nondecreasing && (count == 1 || map.last <= map.first + stride);
  if (repeated.pattern.is_contiguous() && repeated.nondecreasing) repeated.last = repeated.first;
  if (repeated.pattern.depth() > Pattern::max_depth)
    return fail(Code::bad_type, "the datatype is nested too deeply: merge some of its levels");
  return repeated;
}

Result<TypeMap> sequence(std::vector<TypeMap> parts) {
  std::erase_if(parts, [](const TypeMap& part) { return part.pattern.empty(); });
  if (parts.empty()) return TypeMap{};
  TypeMap whole = parts.front();
  std::vector<Pattern> patterns;
  patterns.reserve(parts.size());
  patterns.push_back(parts.front().pattern);
  std::uint64_t bytes = parts.front().size();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const TypeMap& part = parts[i];
    whole.nondecreasing = whole.nondecreasing && part.nondecreasing && whole.last <= part.first;
    whole.last = part.last;
    const std::int64_t end = std::max(whole.lb + whole.extent, part.lb + part.extent);
    whole.lb = std::min(whole.lb, part.lb);
    whole.extent = end - whole.lb;
    patterns.push_back(part.pattern);
    bytes += part.size();
    if (bytes > as_unsigned(max_bytes))
      return fail(Code::bad_type, "the datatype has more than 2^62 bytes");
  }
  whole.pattern = Pattern::indexed(std::move(patterns));
  if (whole.pattern.depth() > Pattern::max_depth)
    return fail(Code::bad_type, "the datatype is nested too deeply: merge some of its levels");
  return whole;
}

// Blocks of a type without gaps are pieces: one pass, without an allocation a block.
Result<TypeMap> dense_blocks(const TypeMap& map, std::span<const std::int64_t> lens,
                             std::span<const std::int64_t> displacements) {
  PieceCollector pieces;
  pieces.reserve(lens.size());
  TypeMap whole;
  std::int64_t end = 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < lens.size(); ++i) {
    if (lens[i] <= 0) continue;
    std::int64_t len = 0;
    const bool fits = !__builtin_mul_overflow(lens[i], map.extent, &len) && len <= max_bytes;
    bytes += fits ? as_unsigned(len) : 0;
    if (!fits || bytes > as_unsigned(max_bytes))
      return fail(Code::bad_type, "the datatype has more than 2^62 bytes");
    const std::int64_t begin = displacements[i];
    if (begin < -max_bytes || begin > max_bytes - len)
      return fail(Code::bad_type, "the datatype has a displacement beyond 2^62 bytes");
    const bool is_first = bytes == as_unsigned(len);
    whole.nondecreasing = is_first || (whole.nondecreasing && whole.last <= begin);
    whole.first = is_first ? begin : whole.first;
    whole.last = begin;
    whole.lb = is_first ? begin : std::min(whole.lb, begin);
    end = is_first ? begin + len : std::max(end, begin + len);
    pieces.add(begin, as_unsigned(len));
  }
  whole.extent = end - whole.lb;
  whole.pattern = Pattern::list(std::move(pieces));
  return whole;
}

Result<TypeMap> blocks(const TypeMap& map, std::span<const std::int64_t> lens,
                       std::span<const std::int64_t> displacements) {
  if (map.is_dense() && map.lb == 0 && map.first == 0 && map.last == 0 && map.nondecreasing)
    return dense_blocks(map, lens, displacements);
  std::vector<TypeMap> parts;
  parts.reserve(lens.size());
  TypeMap block;
  std::int64_t block_len = -1;
  for (std::size_t i = 0; i < lens.size(); ++i) {
    if (lens[i] != block_len) {
      SHIMA_TRY_ASSIGN(block, repeat(map, lens[i], map.extent));
      block_len = lens[i];
    }
    parts.push_back(shift(block, displacements[i]));
  }
  return sequence(std::move(parts));
}

Result<TypeMap> subarray(const TypeMap& map, const Subarray& shape) {
  TypeMap part = map;
  std::int64_t stride = map.extent;
  std::int64_t start = 0;
  for (const std::size_t dimension : fastest_first(shape.sizes.size(), shape.c_order)) {
    SHIMA_TRY_ASSIGN(part, repeat(part, shape.subsizes[dimension], stride));
    start += shape.starts[dimension] * stride;
    stride *= shape.sizes[dimension];
  }
  part = shift(std::move(part), start);
  part.lb = 0;
  part.extent = stride;
  return part;
}

Result<TypeMap> darray(const TypeMap& map, const Darray& shape) {
  const std::vector<std::int64_t> coordinates = coordinates_of(shape);
  TypeMap part = map;
  std::int64_t stride = map.extent;
  for (const std::size_t dimension : fastest_first(shape.sizes.size(), shape.c_order)) {
    SHIMA_TRY_ASSIGN(part,
                     spread(part, distribute(shape, dimension, coordinates[dimension]), stride));
    stride *= shape.sizes[dimension];
  }
  part.lb = 0;
  part.extent = stride;
  return part;
}

}  // namespace shima::typemap
