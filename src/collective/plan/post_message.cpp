#include "collective/plan/post_message.h"

#include <cstring>

#include "base/units.h"

namespace shima {

// Begins a message. Patterns that are not in the lasting part follow.
struct PostHead {
  std::uint64_t len_bytes = 0;
  Bounds bounds;
  SlicePlace file;
  SlicePlace memory;
  std::uint32_t file_lasts = 0;
  std::uint32_t memory_lasts = 0;
};

namespace {

Result<PostHead> take_head(std::span<const std::byte>& in) {
  PostHead head;
  if (in.size() < sizeof head) return fail(Code::internal, "decoding a member's post: too short");
  std::memcpy(&head, in.data(), sizeof head);
  in = in.subspan(sizeof head);
  return head;
}

}  // namespace

PostWriter::Identity PostWriter::identity_of(const Pattern& pattern) {
  if (pattern.empty() || pattern.node()->serial == 0) return {};
  return {pattern.node()->serial, pattern.origin()};
}

template <class Visit>
void PostWriter::for_each_lasting(Visit visit) const {
  if (file_ != Identity{}) visit(post_->file.pattern);
  if (memory_ != Identity{}) visit(post_->memory.pattern);
}

std::span<const std::byte> PostWriter::message_of(const Post& post) {
  const Identity none;
  const bool has_data = post.len_bytes > 0;
  const Identity file = has_data ? identity_of(post.file.pattern) : none;
  const Identity memory = has_data ? identity_of(post.memory.pattern) : none;
  lasts_ = file != none || memory != none;
  // A message without one leaves the last lasting part as it is, for the next call.
  if (lasts_ && (file != file_ || memory != memory_)) {
    ++serial_;
    file_ = file;
    memory_ = memory;
  }
  post_ = &post;
  const PostHead head{.len_bytes = post.len_bytes,
                      .bounds = post.bounds,
                      .file = place_of(post.file),
                      .memory = place_of(post.memory),
                      .file_lasts = file == Identity{} ? 0U : 1U,
                      .memory_lasts = memory == Identity{} ? 0U : 1U};
  message_.resize(sizeof head);
  std::memcpy(message_.data(), &head, sizeof head);
  if (!has_data) return message_;
  if (head.file_lasts == 0) encode(post.file.pattern, message_);
  if (head.memory_lasts == 0) encode(post.memory.pattern, message_);
  return message_;
}

std::span<const std::byte> PostWriter::message_with(std::span<const std::byte> rest) {
  static const Post no_data;
  std::ignore = message_of(no_data);
  message_.insert(message_.end(), rest.begin(), rest.end());
  return message_;
}

std::uint64_t PostWriter::serial() const { return lasts_ ? serial_ : 0; }

std::size_t PostWriter::len_bytes() const {
  std::size_t len_bytes = 0;
  for_each_lasting([&](const Pattern& pattern) { len_bytes += PatternCode(pattern).len_bytes(); });
  return len_bytes;
}

void PostWriter::write(std::span<std::byte> out) const {
  for_each_lasting([&](const Pattern& pattern) { PatternCode(pattern).write(out); });
}

Result<std::optional<Bounds>> PostReader::bounds(std::span<const std::byte> message) {
  SHIMA_TRY_ASSIGN(const PostHead head, take_head(message));
  return head.len_bytes == 0 ? std::nullopt : std::optional(head.bounds);
}

Result<std::span<const std::byte>> PostReader::rest(std::span<const std::byte> message) {
  SHIMA_TRY_ASSIGN(const PostHead head, take_head(message));
  return head.len_bytes == 0 ? message : std::span<const std::byte>();
}

Result<Post> PostReader::read(int index, const NearMessage& message) {
  std::span<const std::byte> in = message.bytes;
  SHIMA_TRY_ASSIGN(const PostHead head, take_head(in));
  if (head.len_bytes == 0) return Post{};
  SHIMA_TRY_ASSIGN(const Lasting* const lasting, lasting_of(index, head, message));
  const auto pattern_of = [&in](bool lasts, const Pattern& known) -> Result<Pattern> {
    if (lasts) return known;
    return decode_pattern(in);
  };
  SHIMA_TRY_ASSIGN(Pattern file, pattern_of(head.file_lasts != 0, lasting->file));
  SHIMA_TRY_ASSIGN(Pattern memory, pattern_of(head.memory_lasts != 0, lasting->memory));
  SHIMA_TRY_ASSIGN(const Slice file_slice, slice_at(head.file, std::move(file)));
  SHIMA_TRY_ASSIGN(const Slice memory_slice, slice_at(head.memory, std::move(memory)));
  return make_received_post(file_slice, memory_slice);
}

// The patterns of a member's lasting part, decoded when it is a new one.
Result<const PostReader::Lasting*> PostReader::lasting_of(int index, const PostHead& head,
                                                          const NearMessage& message) {
  Lasting& lasting = known_[index];
  if (head.file_lasts == 0 && head.memory_lasts == 0) return &lasting;
  if (lasting.serial == message.lasting_serial) return &lasting;
  lasting = {};
  std::span<const std::byte> in = message.lasting;
  // Lists are read where the part is, which its member keeps.
  const std::shared_ptr<const void> owner(std::shared_ptr<const void>(), this);
  if (head.file_lasts != 0) {
    SHIMA_TRY_ASSIGN(lasting.file, decode_pattern(in, owner));
  }
  if (head.memory_lasts != 0) {
    SHIMA_TRY_ASSIGN(lasting.memory, decode_pattern(in, owner));
  }
  lasting.serial = message.lasting_serial;
  return &lasting;
}

}  // namespace shima
