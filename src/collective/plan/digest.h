// What all members must know of a collective call: sums and extremes over their accesses.
//
// The digests of two sets of members join into the digest of both, in any order, so its size does
// not depend on the number of members or of pieces, and it is joined in the meeting that starts a
// call. Pure.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "collective/plan/post.h"

namespace shima {

// Copying this many bytes from the page cache, which lie between two pieces, costs as much as a
// call for each piece.
constexpr std::int64_t dense_gap_bytes = 3072;

// Sent to processes of other builds and nodes: fixed widths, no padding.
struct Digest {
  std::uint64_t member_count = 0;  // with data
  std::uint64_t len_bytes = 0;
  std::uint64_t file_pieces = 0;  // estimates
  std::uint64_t memory_pieces = 0;
  std::uint64_t most_file_pieces = 0;  // the largest number of one member
  std::uint64_t more_rounds = 0;       // the largest number that a member announces
  std::uint64_t last_ns = 0;           // the longest duration of a member's last call on the file
  std::uint64_t granule_bytes = 0;     // divides all pieces and distances in the file; 0: no data
  // The same I/O nodes own all subfiles for all members (LogicalFile::node_identity); else 0.
  std::uint64_t io_nodes = 0;
  // The most that a member has moved through the windows of its channel's pool
  // (ipc/staging_pool.h).
  std::uint64_t staged_bytes = 0;
  std::uint64_t call_id = 0;  // at random; the largest is the call's
  Bounds bounds;              // in the file; meaningless without data
  std::uint32_t ordered = 1;  // each member's file slice is in offset order, no byte twice
  std::uint32_t cached = 1;   // the ends of each access were in the page cache (reads)
  std::uint32_t direct = 0;   // a transfer bypasses the page cache and needs aligned memory
  std::uint32_t dense = 1;    // each member's first pieces have small gaps (dense_gap_bytes)
};

// The digest of one member's access. What it does not derive from the post (cached, direct,
// more_rounds, last_ns, staged_bytes) is for the caller to set.
[[nodiscard]] Digest digest_of(const Post& post);

[[nodiscard]] Digest join(const Digest& a, const Digest& b);

}  // namespace shima
