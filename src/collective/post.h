// A member's description of its access, sent to all members at the start of a collective call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "pattern/pattern.h"

namespace shima {

struct Post {
  bool ordered = true;  // the file slice is in offset order, no byte twice
  bool cached = false;  // its first and last bytes were in the page cache (reads)
  bool direct = false;  // its transfers bypass the page cache and need aligned memory
  std::uint64_t len_bytes = 0;
  std::uint64_t file_pieces = 0;  // estimates
  std::uint64_t memory_pieces = 0;
  std::uint64_t more_rounds = 0;  // the least number of further rounds that the member needs
  Bounds bounds;                  // of the file slice
  Slice file;
  Slice memory;
};

// The approximate number of pieces of a slice; 0 if it is empty.
[[nodiscard]] std::uint64_t estimate_pieces(const Slice& slice);

// Computes all fields that are derived from the two slices.
[[nodiscard]] Post make_post(const Slice& file, const Slice& memory);

[[nodiscard]] std::vector<std::byte> encode_post(const Post& post);
// With `owner`, lists of pieces stay in `bytes` (see decode()).
[[nodiscard]] Result<Post> decode_post(std::span<const std::byte> bytes,
                                       const std::shared_ptr<const void>& owner = nullptr);

}  // namespace shima
