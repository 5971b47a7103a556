// A member's walk through the domains of an agent: whether it has bytes left there.
#include "collective/window/walk.h"

#include <gtest/gtest.h>

namespace shima {
namespace {

constexpr std::uint64_t window_bytes = 100;

Domain domain(std::int64_t begin, std::int64_t end) { return {0, {{begin}, {end}}}; }

// 16 bytes of every 64, from offset 0 on: at 0, 64, ... 960.
Post every_fourth_block() {
  const Pattern pieces = Pattern::strided(16, 64, Pattern::contiguous(16));
  return make_post({pieces, 0, 0, pieces.len_bytes()},
                   {Pattern::contiguous(pieces.len_bytes()), 4096, 0, pieces.len_bytes()});
}

TEST(AgentWalk, HasEndedOnceNoDomainHasBytesLeft) {
  const Layout layout = Layout::plain();
  const Post post = every_fourth_block();
  AgentWalk walk(0, post, layout, {domain(0, 100), domain(500, 600)});
  int windows = 0;
  while (const auto window = walk.next_window(window_bytes)) {
    EXPECT_FALSE(walk.has_ended());
    walk.in(window->domain).skip_below(window->range.end);
    ++windows;
  }
  EXPECT_TRUE(walk.has_ended());
  EXPECT_EQ(windows, 2);
}

TEST(AgentWalk, HasEndedFromTheBeginningWithoutBytesThere) {
  const Layout layout = Layout::plain();
  const Post post = every_fourth_block();
  EXPECT_TRUE(AgentWalk(0, post, layout, {domain(1024, 4096)}).has_ended());
  EXPECT_TRUE(AgentWalk(0, post, layout, {domain(20, 60)}).has_ended());  // between two pieces
  EXPECT_FALSE(AgentWalk(0, post, layout, {domain(20, 65)}).has_ended());
}

}  // namespace
}  // namespace shima
