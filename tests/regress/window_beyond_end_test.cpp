// A read learns where the file ends in one window, and a subgroup elsewhere has asked for a later
// one. The members near the agent have bytes between the two, which belong to no window: an agent
// that marked them wrote before its bitmap.
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

}  // namespace
}  // namespace shima
