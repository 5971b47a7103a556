#include "collective/plan/digest.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "pattern/cursor.h"

namespace shima {

namespace {

constexpr std::int64_t dense_gap_pieces = 2;  // the widest gap, relative to the pieces
constexpr std::uint64_t few_pieces = 4;

bool begins_dense(const Post& post) {
  if (post.file_pieces < few_pieces) return false;
  const Strip strip = Cursor(post.file).strip();
  const auto len_bytes = as_signed(strip.len_bytes);
  return strip.count >= few_pieces &&
         strip.stride_bytes - len_bytes <= std::min(dense_gap_pieces * len_bytes, dense_gap_bytes);
}

}  // namespace

Digest digest_of(const Post& post) {
  if (post.len_bytes == 0) return {};
  return {.member_count = 1,
          .len_bytes = post.len_bytes,
          .file_pieces = post.file_pieces,
          .memory_pieces = post.memory_pieces,
          .most_file_pieces = post.file_pieces,
          .granule_bytes = granule_of(post),
          .bounds = post.bounds,
          .ordered = post.ordered ? 1U : 0U,
          .cached = 0,
          .dense = begins_dense(post) ? 1U : 0U};
}

namespace {

Bounds join_bounds(const Digest& a, const Digest& b) {
  if (a.member_count == 0) return b.bounds;
  if (b.member_count == 0) return a.bounds;
  return {std::min(a.bounds.lowest, b.bounds.lowest), std::max(a.bounds.highest, b.bounds.highest)};
}

}  // namespace

Digest join(const Digest& a, const Digest& b) {
  return {.member_count = a.member_count + b.member_count,
          .len_bytes = a.len_bytes + b.len_bytes,
          .file_pieces = a.file_pieces + b.file_pieces,
          .memory_pieces = a.memory_pieces + b.memory_pieces,
          .most_file_pieces = std::max(a.most_file_pieces, b.most_file_pieces),
          .more_rounds = std::max(a.more_rounds, b.more_rounds),
          .last_ns = std::max(a.last_ns, b.last_ns),
          .granule_bytes = std::gcd(a.granule_bytes, b.granule_bytes),
          .io_nodes = a.io_nodes == b.io_nodes ? a.io_nodes : 0,
          .staged_bytes = std::max(a.staged_bytes, b.staged_bytes),
          .call_id = std::max(a.call_id, b.call_id),
          .bounds = join_bounds(a, b),
          .ordered = a.ordered & b.ordered,
          .cached = a.cached & b.cached,
          .direct = a.direct | b.direct,
          .dense = a.dense & b.dense};
}

}  // namespace shima
