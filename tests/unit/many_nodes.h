// What the members of many nodes write and read: every node has the same amount of data, whatever
// the number of nodes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pattern/cursor.h"
#include "pattern/pattern.h"

namespace shima::test {

inline constexpr int agents_of_node = 2;
inline constexpr std::uint64_t window_bytes = 32 * 1024;
inline constexpr std::int64_t domain_bytes = 64 * 1024;
inline constexpr std::int64_t small_bytes = 16;

struct Scale {
  int nodes = 0;
  int members = 0;  // of a node

  [[nodiscard]] int ranks() const { return nodes * members; }
  [[nodiscard]] std::int64_t file_bytes() const {
    return std::int64_t{nodes} * agents_of_node * domain_bytes;
  }
};

inline std::uint64_t mixed(std::int64_t number) {
  const std::uint64_t mixed = static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15U;
  return mixed >> 40;
}
inline std::byte value_at(std::int64_t offset) { return static_cast<std::byte>(mixed(offset)); }

enum class Shape {
  columns,     // in two domains, dealt among the node's members in turn
  irregular,   // in two domains, dealt at random in small pieces: long lists
  everywhere,  // columns of all ranks through the whole file
};

// The domains of a node's data, in order: of the first agent of one node and the second of another.
inline std::array<std::int64_t, 2> domains_of(int node, const Scale& scale) {
  const int first = (node * 5 + 3) % scale.nodes;
  const int second = (first + scale.nodes / 2) % scale.nodes;
  std::array<std::int64_t, 2> agents{std::int64_t{first} * agents_of_node,
                                     std::int64_t{second} * agents_of_node + 1};
  std::ranges::sort(agents);
  return {agents[0] * domain_bytes, agents[1] * domain_bytes};
}

inline Pattern columns_of(int rank, const Scale& scale) {
  constexpr std::int64_t rows = 8;
  const std::int64_t row_bytes = domain_bytes / rows;
  const std::int64_t piece_bytes = row_bytes / scale.members;
  const Pattern half = Pattern::strided(rows, row_bytes, Pattern::contiguous(piece_bytes));
  const auto begins = domains_of(rank / scale.members, scale);
  const std::int64_t column = rank % scale.members * piece_bytes;
  return Pattern::indexed({half.shifted(begins[0] + column), half.shifted(begins[1] + column)});
}

inline Pattern irregular_of(int rank, const Scale& scale) {
  std::vector<std::int64_t> offsets;
  std::vector<std::uint64_t> lens;
  for (const std::int64_t begin : domains_of(rank / scale.members, scale))
    for (std::int64_t at = begin; at < begin + domain_bytes; at += small_bytes) {
      const auto owner = static_cast<int>(mixed(at) % static_cast<std::uint64_t>(scale.members));
      if (owner != rank % scale.members) continue;
      offsets.push_back(at);
      lens.push_back(small_bytes);
    }
  return Pattern::list(offsets, lens);
}

inline Pattern pattern_of(Shape shape, int rank, const Scale& scale) {
  if (shape == Shape::columns) return columns_of(rank, scale);
  if (shape == Shape::irregular) return irregular_of(rank, scale);
  const std::int64_t row_bytes = scale.ranks() * small_bytes;
  return Pattern::strided(static_cast<std::uint64_t>(scale.file_bytes() / row_bytes), row_bytes,
                          Pattern::contiguous(small_bytes))
      .shifted(rank * small_bytes);
}

// Calls visit(offset) for each byte, in data order.
template <class Visit>
void for_each_byte(const Slice& slice, Visit visit) {
  for (Cursor at(slice); !at.done(); at.advance(1)) visit(at.strip().offset);
}

}  // namespace shima::test
