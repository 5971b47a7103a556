#include "collective/plan/post.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "base/units.h"

namespace shima {

std::uint64_t estimate_pieces(const Slice& slice) {
  if (slice.len_bytes == 0) return 0;
  const double share =
      static_cast<double>(slice.len_bytes) / static_cast<double>(slice.pattern.len_bytes());
  return std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(share * static_cast<double>(slice.pattern.piece_count())));
}

namespace {

// The fixed part of a post on the wire; the two slices follow.
struct Header {
  std::uint64_t len_bytes;
  Bounds bounds;
};

Result<Header> header_of(std::span<const std::byte> bytes) {
  Header header{};
  if (bytes.size() < sizeof header)
    return fail(Code::internal, "decoding a member's post: too short");
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

}  // namespace

Post make_post(const Slice& file, const Slice& memory) {
  return {.ordered = file.pattern.ordered(),
          .len_bytes = file.len_bytes,
          .file_pieces = estimate_pieces(file),
          .memory_pieces = estimate_pieces(memory),
          .bounds = bounds_of(file),
          .file = file,
          .memory = memory};
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
  const Header header{post.len_bytes, post.bounds};
  std::vector<std::byte> bytes(sizeof header);
  std::memcpy(bytes.data(), &header, sizeof header);
  encode(post.file, bytes);
  encode(post.memory, bytes);
  return bytes;
}

Result<std::optional<Bounds>> encoded_bounds(std::span<const std::byte> bytes) {
  SHIMA_TRY_ASSIGN(const Header header, header_of(bytes));
  return header.len_bytes == 0 ? std::nullopt : std::optional(header.bounds);
}

Result<Post> decode_post(std::span<const std::byte> bytes,
                         const std::shared_ptr<const void>& owner) {
  SHIMA_TRY(status_of(header_of(bytes)));
  bytes = bytes.subspan(sizeof(Header));
  SHIMA_TRY_ASSIGN(const Slice file, decode(bytes, owner));
  SHIMA_TRY_ASSIGN(const Slice memory, decode(bytes, owner));
  return make_post(file, memory);
}

}  // namespace shima
