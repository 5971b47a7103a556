// A member's post as a message to the members near it (Channel::combine).
//
// The message itself has the numbers of one call, and patterns that a few words describe. A longer
// pattern is in the message's lasting part, which is written and read again only when it is another
// one: a further call with the same types touches no description of a piece. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "collective/plan/post.h"
#include "group/node/contribution.h"
#include "pattern/codec.h"

namespace shima {

struct PostHead;

// The posts of one member, to be sent.
class PostWriter final : public LastingPart {
 public:
  // The message, valid until the next call. The lasting part refers to the post until then.
  [[nodiscard]] std::span<const std::byte> message_of(const Post& post);
  // A message of a post without data, and something else after it; likewise valid.
  [[nodiscard]] std::span<const std::byte> message_with(std::span<const std::byte> rest);

  [[nodiscard]] std::uint64_t serial() const override;
  [[nodiscard]] std::size_t len_bytes() const override;
  void write(std::span<std::byte> out) const override;

 private:
  // What distinguishes long patterns; zeros for a short one.
  struct Identity {
    std::uint64_t node_serial = 0;
    std::int64_t origin = 0;
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  [[nodiscard]] static Identity identity_of(const Pattern& pattern);

  // Calls visit(Pattern) for the patterns in the lasting part.
  template <class Visit>
  void for_each_lasting(Visit visit) const;

  Identity file_;  // of the last lasting part
  Identity memory_;
  std::uint64_t serial_ = 0;
  bool lasts_ = false;  // the message at hand has a lasting part
  const Post* post_ = nullptr;
  std::vector<std::byte> message_;
};

// The posts of the near members, as received.
class PostReader {
 public:
  // The file bounds of a post; nothing if it has no data. Costs nothing, whatever the patterns.
  [[nodiscard]] static Result<std::optional<Bounds>> bounds(std::span<const std::byte> message);
  // What follows a post without data; nothing after one with data.
  [[nodiscard]] static Result<std::span<const std::byte>> rest(std::span<const std::byte> message);
  // The post of member `index`. Lists of pieces in the lasting part are read where they are: the
  // post is valid for as long as that is.
  [[nodiscard]] Result<Post> read(int index, const NearMessage& message);

 private:
  struct Lasting {
    std::uint64_t serial = 0;
    Pattern file;
    Pattern memory;
  };
  [[nodiscard]] Result<const Lasting*> lasting_of(int index, const PostHead& head,
                                                  const NearMessage& message);

  std::map<int, Lasting> known_;  // by member
};

}  // namespace shima
