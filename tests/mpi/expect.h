// Checks that tell both values, and checks of error classes.
#ifndef SHIMA_TESTS_EXPECT_H
#define SHIMA_TESTS_EXPECT_H

#include "mpi_check.h"

#define EXPECT(condition) REQUIRE(condition)

#define EXPECT_EQ(actual, expected) \
  expect_equal((long long)(actual), (long long)(expected), #actual, __LINE__)

// Calls and checks the class of what comes back.
#define EXPECT_CLASS(call, expected) EXPECT_EQ(class_of(call), expected)
#define EXPECT_OK(call)              CHECK(call)

static inline void expect_equal(long long actual, long long expected, const char* what, int line) {
  char text[400];
  if (actual == expected) return;
  snprintf(text, sizeof text, "%.300s is %lld, not %lld", what, actual, expected);
  give_up(text, line);
}

#endif
