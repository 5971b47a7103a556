// The posts that members show each other: what is read is what was written, and a long description
// is written and decoded once, however many calls use it.
#include <gtest/gtest.h>

#include "collective/plan/post_message.h"
#include "unit/allocations.h"
#include "unit/pattern_model.h"

namespace shima::test {
namespace {

// The memory of a lasting part, as a channel keeps it.
class Shown {
 public:
  NearMessage show(PostWriter& writer, const Post& post) {
    const auto bytes = writer.message_of(post);
    if (writer.serial() != 0 && writer.serial() != serial_) {
      lasting_.resize(writer.len_bytes());
      writer.write(lasting_);
      serial_ = writer.serial();
      ++written;
    }
    if (writer.serial() == 0) return {bytes, 0, {}};
    return {bytes, serial_, lasting_};
  }
  int written = 0;

 private:
  std::vector<std::byte> lasting_;
  std::uint64_t serial_ = 0;
};

Pattern irregular(std::int64_t pieces) {
  std::vector<std::int64_t> offsets;
  std::vector<std::uint64_t> lens;
  for (std::int64_t i = 0; i < pieces; ++i) {
    offsets.push_back(i * 100 + i % 7 * 8);
    lens.push_back(as_unsigned(8 + i % 5 * 8));
  }
  return Pattern::list(offsets, lens);
}

Post post_of(const Slice& file) {
  const Slice memory{Pattern::contiguous(file.len_bytes), 4096, 0, file.len_bytes};
  return make_post(file, memory);
}

void expect_same(const Post& read, const Post& post) {
  EXPECT_EQ(read.len_bytes, post.len_bytes);
  EXPECT_EQ(walk(Cursor(read.file)), walk(Cursor(post.file)));
  EXPECT_EQ(walk(Cursor(read.memory)), walk(Cursor(post.memory)));
}

TEST(PostMessage, BringsBackWhatWasWritten) {
  for_each_seed(500, [](Random& random) {
    PostWriter writer;
    PostReader reader;
    Shown shown;
    Slice previous;
    for (int call = 0; call < 6; ++call) {
      const bool repeats = call > 0 && random.one_in(2);
      const auto slice = repeats            ? previous
                         : random.one_in(3) ? Slice{irregular(random.between(2, 300)), 64, 0, 16}
                                            : random_slice(random, random_pattern(random)).slice;
      previous = slice;
      const Post post = make_post(slice, slice);
      const auto read = reader.read(3, shown.show(writer, post));
      ASSERT_TRUE(read.has_value()) << describe(read.error());
      expect_same(*read, post);
    }
  });
}

// The place in the file moves on, as with an individual file pointer.
TEST(PostMessage, TouchesNoPieceTheSecondTime) {
  std::array<std::size_t, 2> second_time{};
  for (std::size_t i = 0; i < 2; ++i) {
    const Pattern view = Pattern::tiled(irregular(i == 0 ? 500 : 50000), std::int64_t{1} << 30);
    const std::uint64_t len_bytes = irregular(i == 0 ? 500 : 50000).len_bytes();
    PostWriter writer;
    PostReader reader;
    Shown shown;
    const Post first = post_of({view, 0, 0, len_bytes});
    expect_same(*reader.read(0, shown.show(writer, first)), first);
    const Post next = post_of({view, 0, len_bytes, len_bytes});
    const std::size_t before = allocations;
    const auto read = reader.read(0, shown.show(writer, next));
    second_time[i] = allocations - before;
    ASSERT_TRUE(read.has_value());
    expect_same(*read, next);
    EXPECT_EQ(shown.written, 1);
  }
  EXPECT_EQ(second_time[0], second_time[1]);
  EXPECT_LE(second_time[0], 8U);
}

TEST(PostMessage, IsWrittenAgainForAnotherPattern) {
  const Pattern first = irregular(1000);
  const Pattern second = irregular(2000);
  PostWriter writer;
  PostReader reader;
  Shown shown;
  for (const Pattern& pattern : {first, second, first, first.shifted(8), first.shifted(8)}) {
    const Post post = post_of({pattern, 0, 0, pattern.len_bytes()});
    expect_same(*reader.read(0, shown.show(writer, post)), post);
  }
  EXPECT_EQ(shown.written, 4);
}

// Calls without data, or with short descriptions, do not displace a long one.
TEST(PostMessage, KeepsTheLongDescriptionMeanwhile) {
  const Pattern list = irregular(1000);
  const Post with_list = post_of({list, 0, 0, list.len_bytes()});
  const Post with_header = post_of({Pattern::contiguous(100), 0, 0, 100});
  const Post without_data = post_of({list, 0, 0, 0});
  PostWriter writer;
  PostReader reader;
  Shown shown;
  for (const Post& post :
       {with_list, Post{}, with_list, with_header, with_list, without_data, with_list})
    expect_same(*reader.read(0, shown.show(writer, post)), post);
  EXPECT_EQ(shown.written, 1);
}

TEST(PostMessage, RefusesDamage) {
  PostWriter writer;
  Shown shown;
  const Post post = post_of({irregular(100), 0, 0, 800});
  const NearMessage good = shown.show(writer, post);
  for (std::size_t len = 0; len < good.bytes.size(); ++len)
    EXPECT_FALSE(PostReader().read(0, {good.bytes.first(len), 1, good.lasting}).has_value());
  for (std::size_t len = 0; len < good.lasting.size(); len += 8)
    EXPECT_FALSE(PostReader().read(0, {good.bytes, 1, good.lasting.first(len)}).has_value());
}

// A walk over both sides would leave the shorter one.
TEST(PostMessage, RefusesSidesOfDifferentLengths) {
  const Slice shorter{Pattern::contiguous(60), 4096, 0, 60};
  const Slice longer{Pattern::contiguous(100), 0, 0, 100};
  for (const Post& post : {make_post(longer, shorter), make_post(shorter, longer)}) {
    PostWriter writer;
    Shown shown;
    EXPECT_FALSE(PostReader().read(0, shown.show(writer, post)).has_value());
  }
}

TEST(PostMessage, TellsBoundsWithoutDecoding) {
  PostWriter writer;
  EXPECT_FALSE(PostReader::bounds(writer.message_of(Post{})).value().has_value());
  const Post post = post_of({irregular(100), 40, 0, 800});
  const auto bounds = PostReader::bounds(writer.message_of(post));
  EXPECT_EQ(bounds.value()->lowest, post.bounds.lowest);
  EXPECT_EQ(bounds.value()->highest, post.bounds.highest);
}

}  // namespace
}  // namespace shima::test
