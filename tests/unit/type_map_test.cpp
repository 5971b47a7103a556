// The meaning of a datatype of many blocks without gaps (hindexed of a basic type): it is made in
// one pass, without an allocation a block.
#include <gtest/gtest.h>

#include "pattern/type_map.h"
#include "unit/allocations.h"
#include "unit/pattern_model.h"

namespace shima::test {
namespace {

constexpr std::int64_t element_bytes = 4;

// Irregular blocks of elements; in displacement order, or from the last to the first.
struct ManyBlocks {
  std::vector<std::int64_t> lens;
  std::vector<std::int64_t> displacements;

  ManyBlocks(std::int64_t count, bool backwards) {
    for (std::int64_t i = 0; i < count; ++i) {
      lens.push_back(1 + i % 5);
      const std::int64_t place = backwards ? count - 1 - i : i;
      displacements.push_back(place * 100 + place % 7 * 8);
    }
  }
  [[nodiscard]] Bytes bytes() const {
    Bytes all;
    for (std::size_t i = 0; i < lens.size(); ++i)
      for (std::int64_t byte = 0; byte < lens[i] * element_bytes; ++byte)
        all.push_back(displacements[i] + byte);
    return all;
  }
};

TEST(TypeMap, ManyDenseBlocksNeedNoAllocationEach) {
  const TypeMap element = typemap::element(element_bytes);
  for (const bool backwards : {false, true}) {
    std::vector<std::size_t> needed;
    for (const std::int64_t count : {100, 10'000, 200'000}) {
      const ManyBlocks blocks(count, backwards);
      const std::size_t before = allocations;
      const auto map = typemap::blocks(element, blocks.lens, blocks.displacements);
      needed.push_back(allocations - before);
      ASSERT_TRUE(map.has_value());
      EXPECT_EQ(map->nondecreasing, !backwards);
      EXPECT_EQ(map->pattern.piece_count(), as_unsigned(count));
      EXPECT_TRUE(count > 10'000 || walk(map->pattern) == blocks.bytes());
    }
    EXPECT_EQ(needed[0], needed[1]);
    EXPECT_EQ(needed[1], needed[2]);
    EXPECT_LE(needed[2], 8U);
  }
}

// Blocks that follow each other are one piece.
TEST(TypeMap, AdjacentDenseBlocksAreJoined) {
  const std::vector<std::int64_t> lens{2, 1, 0, 3};
  const std::vector<std::int64_t> displacements{8, 16, 1000, 20};
  const auto map = typemap::blocks(typemap::element(element_bytes), lens, displacements);
  ASSERT_TRUE(map.has_value());
  EXPECT_TRUE(map->pattern.is_contiguous());
  EXPECT_EQ(map->pattern.lowest(), 8);
  EXPECT_EQ(map->size(), 24U);
}

}  // namespace
}  // namespace shima::test
