#include "simulate/workload.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace shima::simulate {
namespace {

constexpr std::array<std::string_view, 4> shape_names{"columns", "blocks", "irregular", "one_rank"};
constexpr std::uint64_t most_file_bytes = std::uint64_t{1} << 60;

std::uint64_t pieces_of(const Workload& workload) {
  return std::max<std::uint64_t>(1, workload.bytes_per_rank / workload.piece_bytes);
}

// A number that looks random; the same on all machines.
std::uint64_t scattered(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

Pattern columns(const Workload& workload, std::uint64_t distance) {
  return Pattern::strided(pieces_of(workload), as_signed(distance),
                          Pattern::contiguous(workload.piece_bytes));
}

// Rows of one piece a rank. All pieces of a row have one length, from half to three halves of
// piece_bytes; each row begins at another rank.
Pattern irregular(const Workload& workload, int rank) {
  const std::uint64_t unit = std::gcd(workload.piece_bytes, std::uint64_t{8});
  const std::uint64_t units = workload.piece_bytes / unit;
  const auto ranks = static_cast<std::uint64_t>(workload.ranks);
  PieceCollector pieces;
  pieces.reserve(pieces_of(workload));
  std::uint64_t row_begin = 0;
  for (std::uint64_t row = 0; row < pieces_of(workload); ++row) {
    const std::uint64_t dice = scattered(row);
    const std::uint64_t len = unit * std::max<std::uint64_t>(1, units / 2 + dice % (units + 1));
    const std::uint64_t place = (static_cast<std::uint64_t>(rank) + (dice >> 20)) % ranks;
    pieces.add(as_signed(row_begin + place * len), len);
    row_begin += ranks * len;
  }
  return Pattern::list(std::move(pieces));
}

Slice whole(const Pattern& pattern, std::int64_t base) {
  return {pattern, base, 0, pattern.len_bytes()};
}

Slice file_of(const Workload& workload, int rank) {
  const auto before = static_cast<std::uint64_t>(rank);
  switch (workload.shape) {
    case Shape::columns:
      return whole(
          columns(workload, workload.piece_bytes * static_cast<std::uint64_t>(workload.ranks)),
          as_signed(before * workload.piece_bytes));
    case Shape::blocks:
      return whole(Pattern::contiguous(workload.bytes_per_rank),
                   as_signed(before * workload.bytes_per_rank));
    case Shape::irregular:
      return whole(irregular(workload, rank), 0);
    default:
      if (rank != workload.ranks - 1) return {};
      return whole(columns(workload, 2 * workload.piece_bytes), 0);
  }
}

}  // namespace

std::optional<Shape> shape_named(std::string_view name) {
  const auto found = std::ranges::find(shape_names, name);
  if (found == shape_names.end()) return std::nullopt;
  return static_cast<Shape>(found - shape_names.begin());
}

std::string_view name_of(Shape shape) { return shape_names[static_cast<std::size_t>(shape)]; }

Status check(const Workload& workload) {
  if (workload.ranks < 1 || workload.ranks_per_node < 1 || workload.cores_per_node < 1)
    return fail(Code::bad_argument, "there must be at least one rank, one a node, and one core");
  if (workload.bytes_per_rank == 0 || workload.piece_bytes == 0)
    return fail(Code::bad_argument, "a rank must have at least one byte, and pieces one");
  if (workload.piece_bytes > workload.bytes_per_rank)
    return fail(Code::bad_argument, "a piece is larger than all bytes of a rank");
  if (workload.bytes_per_rank > most_file_bytes / 4 / static_cast<std::uint64_t>(workload.ranks))
    return fail(Code::bad_argument, "the file would be larger than 256 PiB");
  if (workload.subfiles < 1 || workload.subfiles > most_subfiles || workload.unit_bytes == 0 ||
      workload.unit_bytes > largest_unit_bytes)
    return fail(Code::bad_argument, "a file has 1 to 4096 subfiles, and units of 1 B to 1 TiB");
  return {};
}

Topology topology_of(const Workload& workload) {
  std::vector<Member> members(static_cast<std::size_t>(workload.ranks));
  const int nodes = workload.nodes();
  for (int rank = 0; rank < workload.ranks; ++rank)
    members[static_cast<std::size_t>(rank)] = {
        workload.round_robin ? rank % nodes : rank / workload.ranks_per_node,
        workload.cores_per_node};
  return Topology(members);
}

Layout layout_of(const Workload& workload) {
  return workload.subfiles == 1 ? Layout::plain()
                                : Layout::striped(workload.unit_bytes, workload.subfiles);
}

Access access_of(const Workload& workload, int rank) {
  Slice file = file_of(workload, rank);
  if (file.len_bytes == 0) return {};
  const std::uint64_t len = file.len_bytes;
  return {std::move(file), whole(Pattern::contiguous(len), 0)};
}

Post post_of(const Workload& workload, int rank) {
  const Access access = access_of(workload, rank);
  return make_post(access.file, access.memory);
}

}  // namespace shima::simulate
