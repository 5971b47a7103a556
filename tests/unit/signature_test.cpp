// Signatures against elements converted one by one.
#include "pattern/signature.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace shima {
namespace {

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> made;
  for (const int value : values) made.push_back(static_cast<std::byte>(value));
  return made;
}

constexpr Element letter{};
constexpr Element narrow_long{Coding::signed_integer, 8, 4, 1};
constexpr Element swapped_short{Coding::swapped, 2, 2, 1};

TEST(Signature, ConvertsElementsInOrder) {
  const Signature item =
      Signature::sequence({Signature(letter), Signature::repeat(Signature(swapped_short), 2)});
  const Signature all = Signature::repeat(item, 2);
  EXPECT_EQ(all.memory_bytes(), 10U);
  EXPECT_EQ(all.file_bytes(), 10U);
  EXPECT_EQ(all.elements(), 6U);
  const auto memory = bytes({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  std::vector<std::byte> file(10);
  ASSERT_TRUE(all.encode(memory, file));
  EXPECT_EQ(file, bytes({1, 3, 2, 5, 4, 6, 8, 7, 10, 9}));
  std::vector<std::byte> back(10);
  all.decode(file, back);
  EXPECT_EQ(back, memory);
}

TEST(Signature, RefusesNumbersThatDoNotFit) {
  const Signature one{narrow_long};
  std::vector<std::byte> file(4);
  for (const std::int64_t value : {std::int64_t{1} << 31, -(std::int64_t{1} << 31) - 1}) {
    const auto status = one.encode(std::as_bytes(std::span(&value, 1)), file);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::conversion);
  }
}

TEST(Signature, NarrowNumbersComeBack) {
  std::mt19937_64 random(7);
  const Signature one{narrow_long};
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t value = static_cast<std::int32_t>(random());
    std::vector<std::byte> file(4);
    ASSERT_TRUE(one.encode(std::as_bytes(std::span(&value, 1)), file));
    std::int64_t back = 0;
    one.decode(file, std::as_writable_bytes(std::span(&back, 1)));
    EXPECT_EQ(back, value);
  }
}

TEST(Signature, CountsWholeElementsOfACutFile) {
  const Signature item = Signature::sequence(
      {Signature(narrow_long), Signature::repeat(Signature(swapped_short), 3), Signature(letter)});
  const Signature all = Signature::repeat(item, 5);
  // The elements' ends, one by one.
  std::uint64_t file_end = 0;
  std::uint64_t memory_end = 0;
  std::vector<std::uint64_t> expected(all.file_bytes() + 1, 0);
  for (int i = 0; i < 5; ++i) {
    for (const auto& [in_file, in_memory] :
         {std::pair{4, 8}, std::pair{2, 2}, std::pair{2, 2}, std::pair{2, 2}, std::pair{1, 1}}) {
      file_end += static_cast<std::uint64_t>(in_file);
      memory_end += static_cast<std::uint64_t>(in_memory);
      for (std::uint64_t at = file_end; at < expected.size(); ++at) expected[at] = memory_end;
    }
  }
  for (std::uint64_t len = 0; len <= all.file_bytes(); ++len)
    EXPECT_EQ(all.part_in(len).memory_bytes, expected[len]) << len;
}

TEST(Signature, DecodesWholeElementsOfACutFile) {
  const Signature all =
      Signature::sequence({Signature(swapped_short), Signature(Element{Coding::swapped, 2, 2, 2})});
  const auto file = bytes({1, 2, 3, 4, 5, 6});
  for (std::size_t len = 0; len <= 6; ++len) {
    std::vector<std::byte> memory(6, std::byte{99});
    all.decode(std::span(file).first(len), memory);
    EXPECT_EQ(memory, len < 2   ? bytes({99, 99, 99, 99, 99, 99})
                      : len < 6 ? bytes({2, 1, 99, 99, 99, 99})
                                : bytes({2, 1, 4, 3, 6, 5}));
  }
}

TEST(Signature, NothingIsNothing) {
  const Signature nothing = Signature::sequence({});
  const Signature all = Signature::sequence({nothing, Signature(letter), nothing});
  EXPECT_EQ(nothing.memory_bytes(), 0U);
  EXPECT_EQ(all.elements(), 1U);
  std::vector<std::byte> file(1);
  ASSERT_TRUE(all.encode(bytes({7}), file));
  EXPECT_EQ(file, bytes({7}));
}

TEST(Signature, LongDoublesAreIeeeQuadruples) {
  const Signature one{Element{Coding::long_double, sizeof(long double), 16, 1}};
  const long double value = -1.5L;
  std::vector<std::byte> file(16);
  ASSERT_TRUE(one.encode(std::as_bytes(std::span(&value, 1)), file));
  EXPECT_EQ(file, bytes({0xbf, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  long double back = 0;
  one.decode(file, std::as_writable_bytes(std::span(&back, 1)));
  EXPECT_EQ(back, value);
}

}  // namespace
}  // namespace shima
