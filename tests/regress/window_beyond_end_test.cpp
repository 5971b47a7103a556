// Windows of a read that has met the end of the file.
//
// A subgroup elsewhere has asked for a window beyond it. The members near the agent have bytes
// between the two, which belong to no window: an agent that marked them wrote before its bitmap.
//
// In another subfile the file ends within a granule: an agent that cut its windows there did not
// read the last bytes, and handed out what its buffer held before.
#include <gtest/gtest.h>

#include "collective/window/walk.h"

namespace shima {
namespace {

TEST(WindowBeyondEnd, HasNoBytesBeforeIt) {
  constexpr std::uint64_t window_bytes = 4096;
  const Layout layout = Layout::plain();
  const Slice file{Pattern::contiguous(8 * window_bytes), 0, 0, 8 * window_bytes};
  const std::vector<NearPost> posts{{0, make_post(file, file)}};
  const Domain domain{0, {{0}, {8 * window_bytes}}};
  DomainWalk walk(posts, layout, window_bytes, {domain});
  walk.stop_at(FileOffset{100});
  const Window later{0, 0, window_at(TargetOffset{5 * window_bytes}, window_bytes, domain.range)};
  for (const MemberWalk* member : walk.members_in(later))
    member->look_below(later.range.end, [&](const Strip& strip) {
      EXPECT_GE(strip.offset, later.range.begin.value);
    });
}

TEST(WindowBeyondEnd, KeepsWholeGranules) {
  constexpr std::uint64_t stripe_bytes = 65536;
  constexpr FileOffset end_of_file{3 * 65536 + 1003};
  const Layout layout = Layout::striped(stripe_bytes, 2);
  const Slice file{Pattern::contiguous(8 * stripe_bytes), 0, 0, 8 * stripe_bytes};
  const std::vector<NearPost> posts{{0, make_post(file, file)}};
  const Domain domain{1, {{0}, {4 * stripe_bytes}}};
  DomainWalk walk(posts, layout, 2 * stripe_bytes, {domain});
  walk.stop_at(end_of_file);
  const auto window = walk.next_window();
  ASSERT_TRUE(window.has_value());
  EXPECT_GE(window->range.end, layout.below(1, end_of_file));
  EXPECT_EQ(window->range.end.value % 4096, 0);
}

}  // namespace
}  // namespace shima
