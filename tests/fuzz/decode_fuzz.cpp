// Damaged descriptions, alone and in members' posts: the reader returns an error, or slices that
// can be walked within their bounds.
//
// Deterministic mutations of valid descriptions; most useful in the sanitizer builds.
// SHIMA_FUZZ_ROUNDS sets the number of rounds.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>

#include "collective/plan/post_message.h"
#include "pattern/codec.h"
#include "unit/pattern_model.h"

namespace shima::test {
namespace {

using Wire = std::vector<std::byte>;

std::uint64_t word_at(const Wire& wire, std::size_t at) {
  std::uint64_t word = 0;
  std::memcpy(&word, wire.data() + at * sizeof word, sizeof word);
  return word;
}

void set_word(Wire& wire, std::size_t at, std::uint64_t word) {
  std::memcpy(wire.data() + at * sizeof word, &word, sizeof word);
}

// Numbers near the limits of the decoder, and of 64-bit addition.
std::uint64_t edge(Random& random) {
  constexpr std::array<int, 8> bits{0, 1, 8, 32, 61, 62, 63, 64};
  const int bit = bits[random.upto(bits.size() - 1)];
  const std::uint64_t power = bit == 64 ? 0 : std::uint64_t{1} << bit;
  const std::uint64_t near = power + as_unsigned(random.between(-2, 2));
  return random.one_in(2) ? near : 0 - near;
}

void mutate(Wire& wire, Random& random) {
  const std::size_t words = wire.size() / sizeof(std::uint64_t);
  if (words == 0) return;
  const std::size_t at = random.upto(words - 1);
  switch (random.between(0, 7)) {
    case 0:
      wire[random.upto(wire.size() - 1)] ^= std::byte{1} << random.between(0, 7);
      break;
    case 1:
      wire.resize(random.upto(wire.size()));
      break;
    case 2:
      set_word(wire, at, word_at(wire, random.upto(words - 1)));
      break;
    case 3:
      set_word(wire, at, word_at(wire, at) + as_unsigned(random.between(-3, 3)));
      break;
    case 4:
      set_word(wire, at, random.upto(8));
      break;
    case 5: {  // repeats a run of words
      const Wire stretch(wire.begin() + as_signed(at * sizeof(std::uint64_t)), wire.end());
      wire.insert(wire.begin() + as_signed(at * sizeof(std::uint64_t)), stretch.begin(),
                  stretch.end());
      break;
    }
    default:
      set_word(wire, at, edge(random));
      break;
  }
}

// A slice to damage: a tree, an unbounded view, or a pattern whose numbers are near the limits.
Slice good_slice(Random& random) {
  const Modelled made = random_pattern(random);
  if (random.one_in(2)) return random_slice(random, made).slice;
  if (random.one_in(2)) {
    const Pattern tiled = Pattern::tiled(made.pattern, random.between(-5000, 5000));
    return {tiled, random.between(0, 1 << 30), random.upto(tiled.len_bytes()), 0};
  }
  const std::int64_t far = (std::int64_t{1} << 61) - 100000;
  const Pattern wide =
      Pattern::indexed({made.pattern.shifted(-far), made.pattern.shifted(far), made.pattern});
  return whole(Pattern::indexed({wide, wide.shifted(random.between(-9, 9))}));
}

void expect_within(const Strip& strip, std::int64_t lowest, std::int64_t highest) {
  ASSERT_GT(strip.len_bytes, 0U);
  ASSERT_GT(strip.count, 0U);
  const std::int64_t last = strip.offset + as_signed(strip.count - 1) * strip.stride_bytes;
  ASSERT_GE(std::min(strip.offset, last), lowest);
  ASSERT_LE(as_signed(strip.len_bytes), highest - std::max(strip.offset, last));
}

// Walks some strips from the cursor's position; each advances it.
void expect_walk(Cursor& cursor, const Slice& slice) {
  const std::int64_t lowest = slice.base + slice.pattern.lowest();
  const std::int64_t highest = slice.base + slice.pattern.highest();
  for (int i = 0; i < 100 && !cursor.done(); ++i) {
    const Strip strip = cursor.strip();
    ASSERT_NO_FATAL_FAILURE(expect_within(strip, lowest, highest));
    const std::uint64_t before = cursor.byte();
    ASSERT_LE(strip.len_bytes * strip.count, cursor.bytes_left());
    cursor.advance(strip.len_bytes * strip.count);
    ASSERT_EQ(cursor.byte(), before + strip.len_bytes * strip.count);
  }
}

void expect_sound(const Slice& slice, Random& random) {
  ASSERT_LE(slice.first_byte, slice.pattern.len_bytes());
  ASSERT_LE(slice.len_bytes, slice.pattern.len_bytes() - slice.first_byte);
  Cursor cursor(slice);
  expect_walk(cursor, slice);
  for (int i = 0; i < 3; ++i) {
    cursor.seek_byte(random.upto(slice.len_bytes));
    expect_walk(cursor, slice);
    cursor.advance(random.upto(slice.len_bytes));
    expect_walk(cursor, slice);
  }
  const Bounds bounds = bounds_of(slice);
  ASSERT_LE(bounds.lowest, bounds.highest);
  if (!slice.pattern.ordered()) return;
  const std::int64_t offset = random.between(bounds.lowest, bounds.highest);
  cursor.seek_offset(offset);
  EXPECT_TRUE(cursor.done() || cursor.strip().offset >= offset);
  expect_walk(cursor, slice);
}

// An accepted slice can be encoded again, unless it spans more than a file can.
void expect_sendable(const Slice& slice) {
  const auto limit = std::uint64_t{1} << 61;
  const auto near = [&](std::int64_t offset) { return as_unsigned(std::abs(offset)) < limit; };
  if (!near(slice.pattern.lowest() / 2) || !near(slice.pattern.highest() / 2)) return;
  if (as_unsigned(slice.pattern.highest()) - as_unsigned(slice.pattern.lowest()) >= limit) return;
  Wire wire;
  encode(slice, wire);
  std::span<const std::byte> in(wire);
  EXPECT_TRUE(decode(in).has_value());
}

int rounds() {
  const char* text = std::getenv("SHIMA_FUZZ_ROUNDS");
  return text == nullptr ? 20000 : std::atoi(text);
}

TEST(DecodeFuzz, DamageIsRefusedOrHarmless) {
  int accepted = 0;
  for_each_seed(rounds(), [&](Random& random) {
    Wire wire;
    encode(good_slice(random), wire);
    for (std::int64_t i = random.between(0, 4); i > 0; --i) mutate(wire, random);
    std::span<const std::byte> in(wire);
    const Result<Slice> slice = decode(in);
    if (!slice.has_value()) return;
    ++accepted;
    expect_sound(*slice, random);
    expect_sendable(*slice);
  });
  // With fewer, the mutations would only reach the first checks.
  EXPECT_TRUE(HasFailure() || accepted > rounds() / 10) << accepted;
}

// Of so many pieces that it is in a post's lasting part.
Slice long_list(Random& random) {
  std::vector<std::int64_t> offsets;
  std::vector<std::uint64_t> lens;
  std::int64_t at = 0;
  for (std::int64_t i = random.between(100, 200); i > 0; --i) {
    at += random.between(0, 50);
    offsets.push_back(at);
    lens.push_back(as_unsigned(random.between(1, 20)));
    at += as_signed(lens.back());
  }
  return whole(Pattern::list(offsets, lens));
}

// The second post has the number of the first one's lasting part, which the reader has kept.
TEST(DecodeFuzz, DamagedPostsAreRefusedOrHarmless) {
  int accepted = 0;
  for_each_seed(rounds() / 4, [&](Random& random) {
    PostReader reader;
    std::array<Wire, 2> lasting;
    for (Wire& kept : lasting) {
      const auto side = [&] {
        return random.one_in(2) ? long_list(random)
                                : random_slice(random, random_pattern(random)).slice;
      };
      Slice file = side();
      Slice memory = side();
      file.len_bytes = memory.len_bytes = std::min(file.len_bytes, memory.len_bytes);
      const Post post = make_post(file, memory);
      PostWriter writer;
      const auto sent = writer.message_of(post);
      Wire message(sent.begin(), sent.end());
      kept.resize(writer.serial() == 0 ? 0 : writer.len_bytes());
      if (!kept.empty()) writer.write(kept);
      for (std::int64_t i = random.between(0, 3); i > 0; --i)
        mutate(random.one_in(2) ? message : kept, random);
      std::ignore = PostReader::bounds(message);
      std::ignore = PostReader::rest(message);
      const Result<Post> read = reader.read(0, {message, writer.serial(), kept});
      if (!read.has_value()) continue;
      ++accepted;
      for (const Slice* const slice : {&read->file, &read->memory})
        if (slice->len_bytes > 0) expect_sound(*slice, random);
    }
  });
  EXPECT_TRUE(HasFailure() || accepted > rounds() / 20) << accepted;
}

TEST(DecodeFuzz, NoiseIsRefusedOrHarmless) {
  for_each_seed(rounds(), [](Random& random) {
    Wire wire(random.upto(40) * sizeof(std::uint64_t));
    for (std::size_t at = 0; at * sizeof(std::uint64_t) < wire.size(); ++at)
      set_word(wire, at, random.one_in(4) ? edge(random) : random.upto(3));
    std::span<const std::byte> in(wire);
    if (const Result<Slice> slice = decode(in)) expect_sound(*slice, random);
  });
}

}  // namespace
}  // namespace shima::test
