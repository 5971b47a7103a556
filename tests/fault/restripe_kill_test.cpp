// TIMEOUT: 300
// A restriping process may be killed at any moment, or run beside writers.
#include <gtest/gtest.h>

#include <cstring>

#include "fault/striped_kill.h"
#include "store/striped/restripe.h"

namespace shima {
namespace {

class RestripeKill : public StripedKill {
 protected:
  Case restripe_case(const Bytes& bytes, const Regions& from, const Regions& to) {
    may_be_left_ = true;
    return {[&] { make("d/f", from, bytes); }, [&] { return restripe({path("d/f"), to, 1}, {}); },
            [&] { check(bytes, to); }};
  }
  void check(const Bytes& bytes, const Regions& to) {
    EXPECT_EQ(contents("d/f"), bytes);
    if (!findings(false).empty()) {  // resumes
      const Status again = restripe({path("d/f"), to, 1}, {});
      EXPECT_TRUE(again.has_value()) << describe(again.error());
      EXPECT_EQ(read_master(path("d/f")).value()->regions, to);
      EXPECT_EQ(contents("d/f"), bytes);
    }
  }
};

TEST_F(RestripeKill, AtEveryCall) {
  at_every_call(restripe_case(x, three, cut));
  at_every_call(restripe_case(x, beside, mixed));
}

TEST_F(RestripeKill, AtRandomTimes) {
  const Bytes large = some_bytes(10'000'000, 3);
  at_random_times(restripe_case(large, three, cut), 40);
}

TEST_F(RestripeKill, GoesOnWhereItWas) {
  const Bytes large = some_bytes(30'000'000, 4);
  new_world();
  make("d/f", three, large);
  const auto stop = [](FileOffset done, FileOffset) -> Status {
    return done.value > 20'000'000 ? Status(fail(Code::io, "enough")) : Status{};
  };
  EXPECT_FALSE(restripe({path("d/f"), cut, 1}, stop).has_value());
  std::int64_t first = -1;
  const auto see = [&](FileOffset done, FileOffset) -> Status {
    if (first < 0) first = done.value;
    return {};
  };
  require(restripe({path("d/f"), cut, 1}, see));
  EXPECT_GT(first, 20'000'000);
  EXPECT_EQ(contents("d/f"), large);
  expect_tidy();
}

TEST_F(RestripeKill, WritersAreSeen) {
  new_world();
  make("d/f", three, x);
  {
    const auto writer = LogicalFile::open({.path = path("d/f"), .write = true});
    const Status refused = restripe({path("d/f"), cut, 1}, {});
    if (!refused) {
      EXPECT_EQ(refused.error().code, Code::file_in_use);
    }
    // Without leases a writer is detected when it writes.
    EXPECT_FALSE(refused.has_value());
  }
  require(restripe({path("d/f"), cut, 1}, {}));
  EXPECT_EQ(contents("d/f"), x);
  expect_tidy();
}

// While a file is restriped, a process repeatedly opens it for writing, writes a number, and closes
// it: no number that was written may be lost.
TEST_F(RestripeKill, WritersThatComeLoseNothing) {
  new_world();
  make("d/f", three, x);
  const pid_t child = ::fork();
  if (child == 0) {
    for (std::uint64_t number = 1; number <= 120; ++number) {
      std::this_thread::sleep_for(std::chrono::milliseconds(number * 37 % 60));
      auto file = LogicalFile::open({.path = path("d/f"), .read = true, .write = true});
      std::uint64_t before = 0;
      if (!file || !file->read(FileOffset{9000}, &before, sizeof before) ||
          (number > 1 && before != number - 1) ||
          !file->write(FileOffset{9000}, &number, sizeof number))
        ::_exit(1);
    }
    ::_exit(0);
  }
  int done = 0;
  int refused = 0;
  int status = 0;
  for (bool there = false; ::waitpid(child, &status, WNOHANG) == 0; there = !there) {
    const auto before = read_master(path("d/f"));
    const Status restriped = restripe({path("d/f"), there ? three : cut, 1}, {});
    const auto after = read_master(path("d/f"));
    if (restriped && before.value()->id != after.value()->id) ++done;
    if (!restriped) ++refused;
    if (!restriped) {
      EXPECT_EQ(restriped.error().code, Code::file_in_use) << restriped.error().what;
    }
  }
  EXPECT_EQ(status, 0);
  std::printf("%d restripes, %d refused\n", done, refused);
  const Bytes found = contents("d/f").value();
  std::uint64_t last = 0;
  std::memcpy(&last, found.data() + 9000, sizeof last);
  EXPECT_EQ(last, 120U);
}

}  // namespace
}  // namespace shima
