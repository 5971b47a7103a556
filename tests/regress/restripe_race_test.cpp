// The state after a restripe during which others rename or write the file.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/unique_fd.h"
#include "store/striped/parts.h"
#include "store/striped/restripe.h"
#include "striped_world.h"

namespace shima {
namespace {

const Bytes large = some_bytes(20'000'000, 3);  // three windows of a copy

class RestripeRace : public StripedWorld {
 protected:
  void SetUp() override {
    StripedWorld::SetUp();
    new_world();
    make("d/f", three, large);
  }

  // `meddle` runs once, after the first window.
  Status restripe_beside(const std::function<Status()>& meddle, std::uint64_t record_bytes) {
    bool came = false;
    return restripe({path("d/f"), cut, record_bytes}, [&](FileOffset, FileOffset) -> Status {
      return std::exchange(came, true) ? Status{} : meddle();
    });
  }

  // Like a writer's open(2), but does not wait until the restripe has released its lease.
  Status begin_to_write() {
    const auto master = read_master(path("d/f"));
    const std::string subfile = path("target-b/") + subfile_name(master.value()->id, 1);
    const UniqueFd fd(::open(subfile.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
    // Without leases a writer is detected by the modification time.
    if (fd) ::futimens(fd.get(), nullptr);
    return {};
  }
};

TEST_F(RestripeRace, AFileThatWasAwayAndIsBackIsNotSwitchedToPartsThatAreGone) {
  const auto away_and_back = [&]() -> Status {
    SHIMA_TRY(rename_file(path("d/f"), path("e/g")));
    return rename_file(path("e/g"), path("d/f"));
  };
  const Status done = restripe_beside(away_and_back, 1);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Code::file_in_use);
  EXPECT_EQ(contents("d/f"), large);
  EXPECT_EQ(findings(false), "");
  expect_tidy();
}

TEST_F(RestripeRace, AWriterThatComesBeforeAnythingIsRecordedLeavesNothing) {
  const Status done = restripe_beside([&] { return begin_to_write(); }, large.size());
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Code::file_in_use);
  EXPECT_EQ(contents("d/f"), large);
  EXPECT_EQ(findings(false), "");
  expect_tidy();
}

TEST_F(RestripeRace, WhatAnEarlierCallHasRecordedIsKeptByOneThatDoesNotComeToBegin) {
  const auto enough = []() -> Status { return fail(Code::io, "enough"); };
  int windows = 0;
  const auto stop = [&](FileOffset, FileOffset) { return ++windows < 3 ? Status{} : enough(); };
  EXPECT_FALSE(restripe({path("d/f"), cut, 1}, stop).has_value());
  const auto recorded = [&] {
    return unfinished_restripe(read_master(path("d/f")).value().value(), path("d/f")).value();
  };
  const auto before = recorded();
  ASSERT_TRUE(before.has_value());
  EXPECT_GT(before->done, FileOffset{0});
  EXPECT_FALSE(restripe_beside(enough, 1).has_value());
  const auto after = recorded();
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(after->goal.id, before->goal.id);
  require(restripe({path("d/f"), cut, 1}, {}));
  EXPECT_EQ(contents("d/f"), large);
  expect_tidy();
}

TEST_F(RestripeRace, AFileThatGoesAwayForGoodLeavesNothing) {
  const Status done =
      restripe_beside([&] { return rename_file(path("d/f"), path("e/g")); }, large.size());
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(contents("e/g"), large);
  EXPECT_EQ(findings(false), "");
  expect_tidy();
}

}  // namespace
}  // namespace shima
