// A member's description of its access, shown to the members that move bytes for it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "pattern/pattern.h"

namespace shima {

struct Post {
  bool ordered = true;  // the file slice is in offset order, no byte twice
  std::uint64_t len_bytes = 0;
  std::uint64_t file_pieces = 0;  // estimates
  std::uint64_t memory_pieces = 0;
  Bounds bounds;  // of the file slice
  Slice file;
  Slice memory;
};

// The approximate number of pieces of a slice; 0 if it is empty.
[[nodiscard]] std::uint64_t estimate_pieces(const Slice& slice);

// Computes all fields that are derived from the two slices.
[[nodiscard]] Post make_post(const Slice& file, const Slice& memory);

// The same for slices from another member; an error if one is longer than the other.
[[nodiscard]] Result<Post> make_received_post(const Slice& file, const Slice& memory);

// A common divisor of all pieces in the file, of the distances between them and to offset 0; 0 if
// there is no data.
[[nodiscard]] std::uint64_t granule_of(const Post& post);

[[nodiscard]] std::vector<std::byte> encode_post(const Post& post);
[[nodiscard]] Result<Post> decode_post(std::span<const std::byte> bytes);

// The post of a member of this node.
struct NearPost {
  int index = 0;  // of the member on the node
  Post post;
};

}  // namespace shima
