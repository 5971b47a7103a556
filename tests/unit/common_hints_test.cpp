// All members of a file use the hints of the first, however long their text is.
#include "file/hints/common_hints.h"

#include <gtest/gtest.h>

#include "group/agreement.h"
#include "members.h"

namespace shima {
namespace {

// Each member gets the hints of the first.
void expect_first(const std::vector<Hints>& hints, int nodes) {
  SCOPED_TRACE(nodes);
  const test::World world{.members = static_cast<int>(hints.size()), .nodes = nodes};
  test::run_members(world, [&](std::unique_ptr<Channel> channel) {
    const std::string text = encode_hints(hints[static_cast<std::size_t>(channel->rank())]);
    constexpr auto join_summaries = [](const HintsSummary& a, const HintsSummary& b) {
      return join(a, b);
    };
    const auto all =
        combine_values<join_summaries>(*channel, Result<HintsSummary>(summary_of(*channel, text)));
    ASSERT_TRUE(all.has_value());
    const auto first = first_hints(*channel, *all, text);
    ASSERT_TRUE(first.has_value()) << first.error().what;
    EXPECT_EQ(*first, hints.front());
    EXPECT_EQ(channel->agree({}).code, Code::ok);
  });
}

Hints hints_of(std::size_t path_bytes) {
  Hints hints;
  hints.cb_buffer_size = 4096 * (path_bytes + 1);
  hints.shima_targets = "/" + std::string(path_bytes, 'x');
  return hints;
}

TEST(CommonHints, AreThoseOfTheFirstMember) {
  for (const int nodes : {1, 2, 3}) {
    expect_first({hints_of(1), hints_of(1), hints_of(1)}, nodes);
    expect_first({Hints{}, Hints{}, Hints{}}, nodes);
    for (const std::size_t path_bytes : {0UL, 60UL, 90UL, 91UL, 92UL, 93UL, 1000UL, 4000UL}) {
      expect_first({hints_of(path_bytes), Hints{}, hints_of(7)}, nodes);
      expect_first({Hints{}, hints_of(path_bytes), hints_of(path_bytes)}, nodes);
    }
  }
}

TEST(SumValues, AddsUpEachFieldOfAllMembers) {
  struct Many {
    std::array<std::uint64_t, 47> fields{};
  };
  const test::World world{.members = 5, .nodes = 2};
  test::run_members(world, [&](std::unique_ptr<Channel> channel) {
    Many mine;
    for (std::size_t i = 0; i < mine.fields.size(); ++i)
      mine.fields[i] = i * 1000 + static_cast<std::uint64_t>(channel->rank());
    const auto sum = sum_values(*channel, Result<Many>(mine));
    ASSERT_TRUE(sum.has_value());
    for (std::size_t i = 0; i < mine.fields.size(); ++i) EXPECT_EQ(sum->fields[i], i * 5000 + 10);
    // An error of one is an error of all, and the next meeting is a fresh one.
    const auto failed =
        sum_values(*channel, channel->rank() == 3 ? Result<Many>(fail(Code::io, "made here"))
                                                  : Result<Many>(mine));
    EXPECT_FALSE(failed.has_value());
    EXPECT_EQ(channel->agree({}).code, Code::ok);
  });
}

}  // namespace
}  // namespace shima
