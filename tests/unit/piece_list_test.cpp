// Lists of pieces against two plain vectors, in every width of their image.
#include "pattern/piece_list.h"

#include <gtest/gtest.h>

#include "pattern/pattern.h"
#include "pattern_model.h"

namespace shima::test {
namespace {

struct Pieces {
  std::vector<std::int64_t> offsets;
  std::vector<std::uint64_t> lens_bytes;
};

// Ordered, with gaps; `most_len` and `most_gap` decide which widths the image has.
Pieces random_pieces(Random& random, std::int64_t most_len, std::int64_t most_gap) {
  Pieces pieces;
  const std::int64_t count = random.between(1, 300);
  const bool equal = random.one_in(4);
  std::int64_t end = 0;
  std::int64_t len = random.between(1, most_len);
  for (std::int64_t i = 0; i < count; ++i) {
    if (!equal) len = random.between(1, most_len);
    pieces.offsets.push_back(i == 0 ? 0 : end + random.between(0, most_gap));
    pieces.lens_bytes.push_back(as_unsigned(len));
    end = pieces.offsets.back() + len;
  }
  return pieces;
}

void expect_same(const PieceList& list, const Pieces& pieces) {
  ASSERT_EQ(list.count(), pieces.offsets.size());
  std::uint64_t byte = 0;
  for (std::size_t i = 0; i < pieces.offsets.size(); ++i) {
    const std::int64_t offset = pieces.offsets[i];
    const std::int64_t end = offset + as_signed(pieces.lens_bytes[i]);
    EXPECT_EQ(list.offset(i), offset);
    EXPECT_EQ(list.len_bytes(i), pieces.lens_bytes[i]);
    EXPECT_EQ(list.first_byte(i), byte);
    EXPECT_EQ(list.piece_of_byte(byte), i);
    EXPECT_EQ(list.piece_of_byte(byte + pieces.lens_bytes[i] - 1), i);
    EXPECT_EQ(list.first_beyond(offset), i);
    EXPECT_EQ(list.first_beyond(end - 1), i);
    EXPECT_EQ(list.first_beyond(end), i + 1);
    byte += pieces.lens_bytes[i];
  }
  const PieceList::Facts facts = list.facts();
  EXPECT_EQ(facts.len_bytes, byte);
  EXPECT_EQ(facts.lowest, 0);
  EXPECT_EQ(facts.highest, pieces.offsets.back() + as_signed(pieces.lens_bytes.back()));
  EXPECT_TRUE(facts.ordered);
}

TEST(PieceList, AgreesWithVectorsInEveryWidth) {
  for_each_seed(40, [](Random& random) {
    for (const std::int64_t most_len : {200L, 60000L, 3L << 30, 1L << 40}) {
      for (const std::int64_t most_gap : {1000L, 1L << 28, 1L << 40}) {
        const Pieces pieces = random_pieces(random, most_len, most_gap);
        const PieceList made = PieceList::make(pieces.offsets, pieces.lens_bytes);
        expect_same(made, pieces);
        std::span<const std::byte> image = made.image();
        const auto copied = PieceList::decode(image, nullptr);
        ASSERT_TRUE(copied.has_value());
        EXPECT_TRUE(image.empty());
        EXPECT_NE(copied->image().data(), made.image().data());
        expect_same(*copied, pieces);
      }
    }
  });
}

TEST(PieceList, StaysWhereItsOwnerKeepsIt) {
  const std::vector<std::int64_t> offsets{0, 100, 50};
  const std::vector<std::uint64_t> lens{8, 4, 4};
  const PieceList made = PieceList::make(offsets, lens);
  const auto memory =
      std::make_shared<std::vector<std::byte>>(made.image().begin(), made.image().end());
  std::span<const std::byte> in = *memory;
  const auto list = PieceList::decode(in, memory);
  ASSERT_TRUE(list.has_value());
  EXPECT_EQ(list->image().data(), memory->data());
  EXPECT_FALSE(list->facts().ordered);
  EXPECT_EQ(list->facts().granule_bytes, 2U);
}

TEST(PieceList, AnImageTakesLittleMoreThanFiveBytesForASmallPiece) {
  Pieces pieces;
  for (std::int64_t i = 0; i < 64000; ++i) {
    pieces.offsets.push_back(i * 200);
    pieces.lens_bytes.push_back(as_unsigned(8 + i % 96));
  }
  const auto image = PieceList::make(pieces.offsets, pieces.lens_bytes).image();
  EXPECT_LE(image.size(), 64000 * 5 + 1000 * 16 + 64);
}

// Searches rely on the table of blocks, walks on sums that stay within 62 bits.
TEST(PieceList, DamagedImagesAreRefused) {
  const std::vector<std::int64_t> offsets{0, 100, 5000};
  const std::vector<std::uint64_t> lens{8, 4, 400};
  const PieceList made = PieceList::make(offsets, lens);
  const auto refused = [&](std::size_t word, std::uint64_t value) {
    std::vector<std::byte> image(made.image().begin(), made.image().end());
    std::memcpy(image.data() + word * 8, &value, sizeof value);
    std::span<const std::byte> in = image;
    return !PieceList::decode(in, nullptr).has_value();
  };
  EXPECT_TRUE(refused(0, 0));                  // no piece
  EXPECT_TRUE(refused(0, 1000));               // more than the image has
  EXPECT_TRUE(refused(0, ~std::uint64_t{0}));  // products overflow
  EXPECT_TRUE(refused(1, 5));                  // an unknown width
  EXPECT_TRUE(refused(1, 4 | 3 << 8));         // another one
  EXPECT_TRUE(refused(3, 8));                  // a block that begins elsewhere
  EXPECT_TRUE(refused(3, std::uint64_t{1} << 63));
  EXPECT_TRUE(refused(4, 1));  // a block after other bytes
  for (std::size_t size = 0; size < made.image().size(); ++size) {
    std::span<const std::byte> in = made.image().first(size);
    EXPECT_FALSE(PieceList::decode(in, nullptr).has_value());
  }
}

TEST(PieceList, AZeroLengthIsRefused) {
  const std::vector<std::int64_t> offsets{0, 100};
  const std::vector<std::uint64_t> lens{8, 4};
  const PieceList made = PieceList::make(offsets, lens);
  std::vector<std::byte> image(made.image().begin(), made.image().end());
  image[image.size() - 8 + 1] = std::byte{0};  // the second of two lengths of one byte
  std::span<const std::byte> in = image;
  EXPECT_FALSE(PieceList::decode(in, nullptr).has_value());
}

// What the collector is for: a type of many blocks becomes the least shape that describes it.
TEST(PieceCollector, JoinsNeighboursAndRecognisesStrides) {
  PieceCollector adjacent;
  for (std::int64_t i = 0; i < 100; ++i) adjacent.add(40 + i * 8, 8);
  EXPECT_TRUE(Pattern::list(adjacent).is_contiguous());
  PieceCollector regular;
  for (std::int64_t i = 0; i < 100; ++i) {
    regular.add(i * 24, 8);
    regular.add(i * 24 + 8, 8);
    regular.add(7, 0);
  }
  const Pattern strided = Pattern::list(regular);
  EXPECT_EQ(strided.node()->kind, PatternNode::Kind::strided);
  EXPECT_EQ(strided.piece_count(), 100U);
  PieceCollector irregular;
  for (std::int64_t i = 0; i < 100; ++i) irregular.add(i * i * 8, 8);
  EXPECT_EQ(Pattern::list(irregular).node()->kind, PatternNode::Kind::list);
  EXPECT_EQ(Pattern::list(irregular).granule_bytes(), 8U);
}

}  // namespace
}  // namespace shima::test
