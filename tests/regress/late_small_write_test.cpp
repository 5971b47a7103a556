// A member waits for another one that writes for all, and learns meanwhile that a third is lost:
// its call ends with an error, but not before the writer no longer reads what the member has left.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>

#include "collective/run.h"
#include "collective/small_write.h"
#include "unit/member_call.h"
#include "unit/members.h"

namespace {

std::atomic<bool> hold_writes{false};
std::atomic<bool> is_writing{false};
std::atomic<bool> has_returned{false};  // the member that waits
std::atomic<bool> returned_too_early{false};

}  // namespace

// The library's writes come here: they last until the waiting member returns, at most a second.
extern "C" ssize_t pwritev(int fd, const struct iovec* pieces, int count, off_t offset) {
  if (hold_writes.exchange(false)) {
    is_writing = true;
    for (int i = 0; i < 100 && !has_returned; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    returned_too_early = has_returned.load();
  }
  return ::syscall(SYS_pwritev, fd, pieces, count, offset, 0);
}

namespace shima {
namespace {

class LateSmallWrite : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / ("shima_late_" + std::to_string(::getpid()));
  }
  void TearDown() override { std::filesystem::remove(path_); }

  // Each member leaves two pieces of eight bytes; those of two members alternate.
  Status write(Channel& channel) {
    auto file = LogicalFile::open({.path = path_, .write = true, .create = true});
    std::array<std::uint64_t, 2> data{};
    const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data.data()));
    const Pattern pieces = Pattern::strided(2, 16, Pattern::contiguous(8));
    std::vector<std::byte> left;
    pack_small_write({pieces, 8 * channel.rank(), 0, 16}, {Pattern::contiguous(16), address, 0, 16},
                     left);
    MemberCall mine(Tuning{});
    CollectiveCall call = mine.on(*file, channel, Direction::write);
    call.has_moved_own = true;
    call.left = left;
    return CollectiveTransfer(call).start(MemberAccess{});
  }

  std::string path_;
};

TEST_F(LateSmallWrite, HoldsWhoHasLeftTheBytes) {
  const test::World world{.members = 2, .cores = 1};
  test::WorldGround ground(world);
  hold_writes = true;
  std::thread waiting([&] {
    ground.run_member(0, [&](std::unique_ptr<Channel> channel) {
      EXPECT_FALSE(write(*channel).has_value());
      has_returned = true;
    });
  });
  std::thread writing([&] {
    ground.run_member(1, [&](std::unique_ptr<Channel> channel) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the last to arrive
      std::ignore = write(*channel);
    });
  });
  while (!is_writing) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // As the liveness service does (group/liveness/lookout.h).
  NodeSegment::attach(ground.segments[0].ref(), 2, 0).value()->lost_word() = 3;
  waiting.join();
  writing.join();
  EXPECT_FALSE(returned_too_early);
}

}  // namespace
}  // namespace shima
