// A wait that looks at its sockets in vain lets later ones sleep at once, and a success forgives.
#include "lapi/short_poll.h"

#include <gtest/gtest.h>

namespace shima::lapi {
namespace {

// How many waits sleep at once until one looks again, which it does.
unsigned left_out(ShortPoll& poll) {
  unsigned count = 0;
  while (!poll.begin()) ++count;
  return count;
}

TEST(ShortPoll, looks_while_it_succeeds) {
  ShortPoll poll;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(left_out(poll), 0U);
    poll.note_success();
  }
}

TEST(ShortPoll, leaves_out_twice_as_many_waits_after_each_moment_in_vain) {
  ShortPoll poll;
  EXPECT_EQ(left_out(poll), 0U);
  for (const unsigned expected : {1U, 2U, 4U, 8U, 16U, 32U, 64U, 128U, 256U, 256U}) {
    poll.note_vain();
    EXPECT_EQ(left_out(poll), expected);
  }
}

TEST(ShortPoll, forgives_after_a_success) {
  ShortPoll poll;
  for (int i = 0; i < 6; ++i) {
    poll.note_vain();
    std::ignore = left_out(poll);
  }
  poll.note_success();
  EXPECT_EQ(left_out(poll), 0U);
  poll.note_vain();
  EXPECT_EQ(left_out(poll), 1U);
}

}  // namespace
}  // namespace shima::lapi
