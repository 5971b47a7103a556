#include "collective/post.h"

#include <algorithm>
#include <cstring>

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
  std::uint64_t ordered;
  std::uint64_t cached;
  std::uint64_t direct;
  std::uint64_t len_bytes;
  std::uint64_t file_pieces;
  std::uint64_t memory_pieces;
  std::uint64_t more_rounds;
  Bounds bounds;
};

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

std::vector<std::byte> encode_post(const Post& post) {
  const Header header{
      post.ordered ? 1U : 0U, post.cached ? 1U : 0U, post.direct ? 1U : 0U, post.len_bytes,
      post.file_pieces,       post.memory_pieces,    post.more_rounds,      post.bounds};
  std::vector<std::byte> bytes(sizeof header);
  std::memcpy(bytes.data(), &header, sizeof header);
  encode(post.file, bytes);
  encode(post.memory, bytes);
  return bytes;
}

Result<Post> decode_post(std::span<const std::byte> bytes,
                         const std::shared_ptr<const void>& owner) {
  Header header{};
  if (bytes.size() < sizeof header)
    return fail(Code::internal, "decoding a member's post: too short");
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes = bytes.subspan(sizeof header);
  Post post{.ordered = header.ordered != 0,
            .cached = header.cached != 0,
            .direct = header.direct != 0,
            .len_bytes = header.len_bytes,
            .file_pieces = header.file_pieces,
            .memory_pieces = header.memory_pieces,
            .more_rounds = header.more_rounds,
            .bounds = header.bounds,
            .file = {},
            .memory = {}};
  SHIMA_TRY_ASSIGN(post.file, decode(bytes, owner));
  SHIMA_TRY_ASSIGN(post.memory, decode(bytes, owner));
  return post;
}

}  // namespace shima
