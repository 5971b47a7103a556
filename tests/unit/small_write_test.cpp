#include "collective/small_write.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "collective/plan/post_message.h"
#include "group/node/node_segment.h"

namespace shima {
namespace {

using Bytes = std::vector<std::byte>;

Slice whole(Pattern pattern, std::int64_t base) {
  const std::uint64_t len_bytes = pattern.len_bytes();
  return {std::move(pattern), base, 0, len_bytes};
}

// A member: pieces of random lengths at random distances in a file and in memory.
struct Member {
  std::vector<std::int64_t> places;  // in the file, by data byte
  Bytes memory;
  Slice file;
  Slice in_memory;

  Member(std::mt19937_64& random, std::int64_t first) : memory(8192) {
    for (std::byte& byte : memory) byte = static_cast<std::byte>(random());
    const std::uint64_t pieces = 1 + random() % 20;
    std::vector<std::int64_t> offsets;
    std::vector<std::uint64_t> lens;
    std::int64_t at = first;
    for (std::uint64_t i = 0; i < pieces; ++i) {
      const std::uint64_t len_bytes = 1 + random() % 40;
      offsets.push_back(at);
      lens.push_back(len_bytes);
      for (std::uint64_t k = 0; k < len_bytes; ++k)
        places.push_back(at + static_cast<std::int64_t>(k));
      at += static_cast<std::int64_t>(len_bytes + random() % 3 * 50);
    }
    file = whole(Pattern::list(offsets, lens), 0);
    // Every second byte of memory.
    in_memory = whole(Pattern::strided(places.size(), 2, Pattern::contiguous(1)),
                      reinterpret_cast<std::int64_t>(memory.data()));
  }
};

// A message that does not fit must be mapped by the others, which takes longer than the call.
TEST(SmallWrite, TheLargestFitsAMailbox) {
  const Bytes memory(std::size_t{16} << 10);
  const Slice file = whole(Pattern::strided(64, 1024, Pattern::contiguous(256)), 0);
  ASSERT_TRUE(is_small_write(file, false));
  Bytes packed;
  pack_small_write(
      file,
      whole(Pattern::contiguous(memory.size()), reinterpret_cast<std::int64_t>(memory.data())),
      packed);
  EXPECT_LE(PostWriter().message_with(packed).size(), Mailbox::inline_bytes);
}

TEST(SmallWrite, RunsHoldTheBytesOfAllMembers) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    Bytes expected(1 << 16);
    Bytes written(1 << 16);
    std::vector<Bytes> messages;
    std::int64_t first = 0;
    for (std::uint64_t i = 0, count = 1 + random() % 5; i < count; ++i) {
      const Member member(random, first);
      pack_small_write(member.file, member.in_memory, messages.emplace_back());
      for (std::size_t k = 0; k < member.places.size(); ++k)
        expected[static_cast<std::size_t>(member.places[k])] = member.memory[2 * k];
      first = member.places.back() + 1 + static_cast<std::int64_t>(random() % 2 * 100);
    }
    std::ranges::shuffle(messages, random);
    SmallWrites all;
    for (const Bytes& message : messages) ASSERT_TRUE(all.add(message));
    std::int64_t last_end = -1;
    const Status status = all.write([&](FileOffset offset, std::span<const iovec> pieces) {
      EXPECT_GT(offset.value, last_end) << "runs that follow each other are one";
      std::int64_t at = offset.value;
      for (const iovec& piece : pieces) {
        std::memcpy(written.data() + at, piece.iov_base, piece.iov_len);
        at += static_cast<std::int64_t>(piece.iov_len);
      }
      last_end = at;
      return Status{};
    });
    ASSERT_TRUE(status);
    ASSERT_EQ(written, expected) << "seed " << seed;
  }
}

TEST(SmallWrite, PiecesThatOverlapOrAreOutOfOrderAreNotLeft) {
  const auto list = [](std::int64_t first, std::int64_t second) {
    const std::vector<std::int64_t> offsets{first, second};
    const std::vector<std::uint64_t> lens{4, 4};
    return whole(Pattern::list(offsets, lens), 0);
  };
  EXPECT_TRUE(is_small_write(list(0, 10), false));
  EXPECT_FALSE(is_small_write(list(10, 0), false));
  EXPECT_FALSE(is_small_write(list(0, 2), false));
  EXPECT_FALSE(is_small_write(list(2, 0), false));
}

TEST(SmallWrite, OnlyFewBytesInSeveralPiecesAreLeft) {
  const auto pieces_of = [](std::uint64_t len_bytes, std::uint64_t count) {
    return whole(Pattern::strided(count, 100000, Pattern::contiguous(len_bytes)), 0);
  };
  EXPECT_TRUE(is_small_write(pieces_of(256, 64), false));
  EXPECT_FALSE(is_small_write(pieces_of(257, 64), false));
  EXPECT_FALSE(is_small_write(pieces_of(1, 65), false));
  EXPECT_TRUE(is_small_write(pieces_of(512, 32), true));
  EXPECT_FALSE(is_small_write(pieces_of(1, 33), true));
  EXPECT_FALSE(is_small_write(whole(Pattern::contiguous(8), 5), false));
  EXPECT_FALSE(is_small_write({}, false));
}

TEST(SmallWrite, MalformedMessagesAreRefused) {
  Bytes memory(64);
  Bytes message;
  pack_small_write(whole(Pattern::strided(4, 16, Pattern::contiguous(8)), 0),
                   whole(Pattern::contiguous(32), reinterpret_cast<std::int64_t>(memory.data())),
                   message);
  for (std::size_t len = 1; len < message.size(); ++len) {
    SmallWrites all;
    EXPECT_FALSE(all.add(std::span(message).first(len))) << len;
  }
}

}  // namespace
}  // namespace shima
