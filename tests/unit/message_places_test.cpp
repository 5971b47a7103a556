// The limit on what members of several nodes describe to each other in one call.
#include "group/message_places.h"

#include <gtest/gtest.h>

#include <vector>

namespace shima {
namespace {

TEST(MessagePlaces, AddsUpToTheLimit) {
  const std::vector<std::uint64_t> lens{most_message_bytes - 7, 0, 7};
  const auto sum = length_of_messages(lens);
  ASSERT_TRUE(sum);
  EXPECT_EQ(*sum, most_message_bytes);
}

TEST(MessagePlaces, RefusesOneByteMore) {
  const std::vector<std::uint64_t> lens{most_message_bytes - 7, 0, 8};
  const auto sum = length_of_messages(lens);
  ASSERT_FALSE(sum);
  EXPECT_EQ(sum.error().code, Code::unsupported_operation);
}

// A length that would be small, or negative, as an int.
TEST(MessagePlaces, DoesNotNarrow) {
  for (const std::uint64_t len :
       {std::uint64_t{1} << 31, (std::uint64_t{1} << 32) + 5, ~std::uint64_t{0}}) {
    const std::vector<std::uint64_t> lens{len, 1};
    EXPECT_FALSE(length_of_messages(lens)) << len;
  }
}

}  // namespace
}  // namespace shima
