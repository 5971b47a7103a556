// Copying between two patterned places in memory, against a byte-by-byte copy.
#include "pattern/copy.h"

#include <gtest/gtest.h>

#include "unit/pattern_model.h"

namespace shima::test {
namespace {

using Memory = std::vector<unsigned char>;

std::uintptr_t address_of(const Memory& memory) {
  return reinterpret_cast<std::uintptr_t>(memory.data());
}

// A slice, and memory that holds all its bytes from `lowest` on.
struct Place {
  ModelledSlice modelled;
  std::int64_t lowest = 0;
  Memory memory;
};

Place random_place(Random& random) {
  const Modelled whole = random_pattern(random);
  Place place{random_slice(random, whole), 0, {}};
  place.lowest = place.modelled.slice.base + whole.lowest();
  place.memory.resize(as_unsigned(whole.highest() - whole.lowest()));
  for (unsigned char& byte : place.memory) byte = static_cast<unsigned char>(random.upto(255));
  return place;
}

Memory copied_bytewise(const Place& to, const Place& from) {
  Memory memory = to.memory;
  const std::size_t count = std::min(to.modelled.bytes.size(), from.modelled.bytes.size());
  for (std::size_t i = 0; i < count; ++i) {
    const auto target = as_unsigned(to.modelled.bytes[i] - to.lowest);
    memory[target] = from.memory[as_unsigned(from.modelled.bytes[i] - from.lowest)];
  }
  return memory;
}

TEST(CopyBetween, IsABytewiseCopy) {
  for_each_seed(2000, [](Random& random) {
    Place to = random_place(random);
    const Place from = random_place(random);
    const Memory expected = copied_bytewise(to, from);
    Cursor to_cursor(to.modelled.slice);
    Cursor from_cursor(from.modelled.slice);
    const std::uint64_t copied =
        copy_between(address_of(to.memory) - as_unsigned(to.lowest), to_cursor,
                     address_of(from.memory) - as_unsigned(from.lowest), from_cursor);
    EXPECT_EQ(copied, std::min(to.modelled.bytes.size(), from.modelled.bytes.size()));
    EXPECT_EQ(to_cursor.byte(), copied);
    EXPECT_EQ(from_cursor.byte(), copied);
    EXPECT_TRUE(to_cursor.done() || from_cursor.done());
    EXPECT_EQ(to.memory, expected);
  });
}

// Packing a pattern into a row and unpacking it again, with addresses in Slice::base.
TEST(CopyBetween, PacksAndUnpacks) {
  for_each_seed(1000, [](Random& random) {
    Place place = random_place(random);
    Slice slice = place.modelled.slice;
    slice.base += as_signed(address_of(place.memory)) - place.lowest;
    Memory row(slice.len_bytes);
    Slice row_slice{Pattern::contiguous(row.size()), as_signed(address_of(row)), 0, row.size()};
    Cursor row_cursor(row_slice);
    Cursor cursor(slice);
    ASSERT_EQ(copy_between(0, row_cursor, 0, cursor), row.size());
    for (std::size_t i = 0; i < row.size(); ++i)
      ASSERT_EQ(row[i], place.memory[as_unsigned(place.modelled.bytes[i] - place.lowest)]);
    const Memory before = place.memory;
    for (const std::int64_t byte : place.modelled.bytes)
      place.memory[as_unsigned(byte - place.lowest)] ^= 0xff;
    row_cursor.seek_byte(0);
    cursor.seek_byte(0);
    ASSERT_EQ(copy_between(0, cursor, 0, row_cursor), row.size());
    EXPECT_EQ(place.memory, before);
  });
}

// Every piece length, because some have specialized loops.
TEST(CopyBetween, HandlesEveryPieceLength) {
  for (std::uint64_t len = 1; len <= 300; ++len) {
    Memory from(len * 2 * 10);
    for (std::size_t i = 0; i < from.size(); ++i)
      from[i] = static_cast<unsigned char>(i * 7 + i / 256);
    Memory to(len * 10);
    Cursor from_cursor(whole(Pattern::strided(10, as_signed(len) * 2, Pattern::contiguous(len))));
    Cursor to_cursor(whole(Pattern::contiguous(to.size())));
    ASSERT_EQ(copy_between(address_of(to), to_cursor, address_of(from), from_cursor), to.size());
    for (std::size_t i = 0; i < to.size(); ++i)
      ASSERT_EQ(to[i], from[i / len * 2 * len + i % len]) << len;
  }
}

TEST(Match, TakesWholePiecesOfBothSides) {
  const StripPair equal = match({0, 8, 16, 10}, {100, 8, 32, 4});
  EXPECT_EQ(equal.count, 4U);
  EXPECT_EQ(equal.b_stride_bytes, 32);
  const StripPair packed = match({0, 8, -16, 10}, {100, 50, 50, 1});
  EXPECT_EQ(packed.len_bytes, 8U);
  EXPECT_EQ(packed.count, 6U);
  EXPECT_EQ(packed.a_stride_bytes, -16);
  EXPECT_EQ(packed.b_stride_bytes, 8);
  const StripPair unpacked = match({0, 50, 50, 1}, {100, 8, 16, 10});
  EXPECT_EQ(unpacked.count, 6U);
  EXPECT_EQ(unpacked.a_stride_bytes, 8);
}

}  // namespace
}  // namespace shima::test
