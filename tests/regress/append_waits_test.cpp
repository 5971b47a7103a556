// An append waits for a process that does not end its own, as a stopped mount, and then fails with
// an error that names it. Before, it waited without limit.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/turn.h"
#include "calm_clock.h"
#include "iod_world.h"

namespace shima {
namespace {

const Regions on_nodes{{{0}, 4096, {"a", "b"}}};
const Regions on_this_machine{{{0}, 4096, {"c", "beside"}}};
constexpr FileRange all{{0}, {INT64_MAX}};

class AppendWaits : public IodWorld, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    IodWorld::SetUp();
    ::setenv("SHIMA_LOCK_TIMEOUT", "1", 1);
    make("d/f", GetParam() ? on_nodes : on_this_machine, text);
  }
  void TearDown() override {
    ::unsetenv("SHIMA_LOCK_TIMEOUT");
    IodWorld::TearDown();
  }
  [[nodiscard]] LogicalFile open() const {
    return LogicalFile::open({.path = path("d/f"), .read = true, .write = true}).value();
  }
  // All that a message says of this process.
  static void expect_timeout(const Status& appended) {
    ASSERT_FALSE(appended.has_value());
    EXPECT_EQ(appended.error().code, Code::timed_out);
    EXPECT_EQ(appended.error().sys_errno, ETIMEDOUT);
    const std::string who = "process " + std::to_string(::getpid()) + " (";
    for (const std::string& part : {who, std::string("d/f"), std::string("SHIMA_LOCK_TIMEOUT")})
      EXPECT_NE(appended.error().what.find(part), std::string::npos) << appended.error().what;
  }
  // With "more" as often behind it.
  [[nodiscard]] static Bytes text_and_more(int times) {
    Bytes all_bytes = text;
    for (int i = 0; i < times; ++i) all_bytes.insert(all_bytes.end(), {'m', 'o', 'r', 'e'});
    return all_bytes;
  }

  static const Bytes text;
};
const Bytes AppendWaits::text = some_bytes(10'000, 1);

TEST_P(AppendWaits, ForAnotherProcessALimitedTime) {
  LogicalFile holder = open();
  LogicalFile file = open();
  Turn turn;
  require(holder.lock(all, true));
  expect_timeout(file.append("more", 4, turn));
  EXPECT_EQ(contents("d/f"), text);
  holder.unlock(all);
  require(file.append("more", 4, turn));
  EXPECT_EQ(contents("d/f"), text_and_more(1));
  require(holder.lock(all, true));
  require(holder.close());  // or its process ends
  require(file.append("more", 4, turn));
  EXPECT_EQ(contents("d/f"), text_and_more(2));
}

// Of which the first waits for another process.
TEST_P(AppendWaits, BehindOtherAppendsOfItsProcessNoLonger) {
  LogicalFile holder = open();
  LogicalFile file = open();
  Turn turn;
  require(holder.lock(all, true));
  const CalmClock clock;
  std::vector<Status> ended(6);
  std::vector<std::thread> threads;
  for (Status& one : ended) threads.emplace_back([&] { one = file.append("more", 4, turn); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(clock.elapsed(), std::chrono::seconds(5)) << "each has waited for all before it";
  for (const Status& one : ended) expect_timeout(one);
  holder.unlock(all);
  EXPECT_EQ(contents("d/f"), text);
}

INSTANTIATE_TEST_SUITE_P(OnNodes, AppendWaits, testing::Bool());

}  // namespace
}  // namespace shima
