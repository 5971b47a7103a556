#include "collective/plan/post.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/units.h"
#include "pattern/codec.h"

namespace shima {

std::uint64_t estimate_pieces(const Slice& slice) {
  if (slice.len_bytes == 0) return 0;
  if (slice.pattern.is_contiguous()) return 1;
  const double share =
      static_cast<double>(slice.len_bytes) / static_cast<double>(slice.pattern.len_bytes());
  return std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(share * static_cast<double>(slice.pattern.piece_count())));
}

Post make_post(const Slice& file, const Slice& memory) {
  return {.ordered = file.pattern.ordered(),
          .len_bytes = file.len_bytes,
          .file_pieces = estimate_pieces(file),
          .memory_pieces = estimate_pieces(memory),
          .bounds = bounds_of(file),
          .file = file,
          .memory = memory};
}

Result<Post> make_received_post(const Slice& file, const Slice& memory) {
  if (file.len_bytes != memory.len_bytes)
    return fail(Code::internal, "decoding a member's post: its sides have different lengths");
  return make_post(file, memory);
}

std::uint64_t granule_of(const Post& post) {
  if (post.len_bytes == 0) return 0;
  const Pattern& pattern = post.file.pattern;
  // Include the begin of pieces, and the cuts of the slice in its first and its last piece.
  std::uint64_t granule =
      std::gcd(pattern.granule_bytes(), as_unsigned(std::abs(post.file.base + pattern.lowest())));
  granule = std::gcd(granule, as_unsigned(post.bounds.lowest));
  return std::gcd(granule, as_unsigned(post.bounds.highest));
}

std::vector<std::byte> encode_post(const Post& post) {
  std::vector<std::byte> bytes;
  encode(post.file, bytes);
  encode(post.memory, bytes);
  return bytes;
}

Result<Post> decode_post(std::span<const std::byte> bytes) {
  SHIMA_TRY_ASSIGN(const Slice file, decode(bytes));
  SHIMA_TRY_ASSIGN(const Slice memory, decode(bytes));
  return make_received_post(file, memory);
}

}  // namespace shima
