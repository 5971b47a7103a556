// What a member tells the others at the start of a collective call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "pattern/pattern.h"

namespace shima {

struct Post {
  bool ordered = true;  // the file slice is in offset order, no byte twice
  bool cached = false;  // its first and last bytes were in the page cache (reads)
  bool direct = false;  // its file is moved past the page cache, which wants aligned memory
  std::uint64_t len_bytes = 0;
  std::uint64_t file_pieces = 0;  // estimates
  std::uint64_t memory_pieces = 0;
  std::uint64_t more_rounds = 0;  // in how many more calls the member has to take part at least
  Bounds bounds;                  // of the file slice
  Slice file;
  Slice memory;
};

// About how many pieces a slice has; 0 if it is empty.
[[nodiscard]] std::uint64_t estimate_pieces(const Slice& slice);

// Fills in everything that follows from the two slices.
[[nodiscard]] Post make_post(const Slice& file, const Slice& memory);

[[nodiscard]] std::vector<std::byte> encode_post(const Post& post);
[[nodiscard]] Result<Post> decode_post(std::span<const std::byte> bytes);

}  // namespace shima
