// A collective call to simulate: how many ranks on which nodes, and what each of them accesses.
//
// The access of a rank is made when it is asked for, so that a million ranks need no memory. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/direction.h"
#include "base/result.h"
#include "collective/plan/plan.h"
#include "collective/plan/post.h"

namespace shima::simulate {

enum class Shape : std::uint8_t {
  columns,    // the ranks' pieces alternate
  blocks,     // one block each, one after the other
  irregular,  // pieces of unequal lengths, dealt out differently in each row
  one_rank,   // the last rank alone has data: pieces with gaps of their length
};

struct Workload {
  Shape shape = Shape::columns;
  int ranks = 1;
  int ranks_per_node = 128;
  int cores_per_node = 128;
  bool round_robin = false;  // one rank to each node in turn; otherwise in blocks
  std::uint64_t bytes_per_rank = std::uint64_t{1} << 20;
  std::uint64_t piece_bytes = 4096;
  int subfiles = 1;
  std::uint64_t unit_bytes = std::uint64_t{1} << 20;
  Direction direction = Direction::write;
  bool cached = false;  // a read of cached bytes
  Tuning tuning{};

  [[nodiscard]] int nodes() const { return (ranks - 1) / ranks_per_node + 1; }
};

[[nodiscard]] std::optional<Shape> shape_named(std::string_view name);
[[nodiscard]] std::string_view name_of(Shape shape);

// Refuses numbers below 1, and files that are too large.
[[nodiscard]] Status check(const Workload& workload);

[[nodiscard]] Topology topology_of(const Workload& workload);
[[nodiscard]] Layout layout_of(const Workload& workload);

// What a rank accesses: the slices that its call would have.
struct Access {
  Slice file;
  Slice memory;
};
[[nodiscard]] Access access_of(const Workload& workload, int rank);
[[nodiscard]] Post post_of(const Workload& workload, int rank);

}  // namespace shima::simulate
