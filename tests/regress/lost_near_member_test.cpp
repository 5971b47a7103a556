// A subgroup master waits for a member of its node that is lost before it has filled a window: the
// call ends in an error for all, also if no message is under way that would notice the loss.
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "collective/run.h"
#include "unit/member_call.h"
#include "unit/members.h"

namespace shima {
namespace {

constexpr std::size_t len_bytes = 64 * 1024;
constexpr int lost = 3;  // the second member of the second node

class LostNearMember : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / ("shima_lost_" + std::to_string(::getpid()));
  }
  void TearDown() override { std::filesystem::remove(path_); }

  // Rank 0 is the only agent; the members of the other node fill the window of their master, rank
  // 2. Returns the outcome of a member; the lost one takes no part in the transfer.
  Status write(Channel& channel, const SharedRef& segment) {
    auto file = LogicalFile::open({.path = path_, .write = true, .create = true});
    std::vector<std::byte> buffer(len_bytes);
    const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(buffer.data()));
    const auto begin = static_cast<std::int64_t>(len_bytes) * channel.rank();
    const Pattern block = Pattern::contiguous(len_bytes);
    const Post post = make_post({block, begin, 0, len_bytes}, {block, address, 0, len_bytes});
    MemberCall mine({.strategy = Strategy::subgroup, .path = Path::pack, .max_agents = 1});
    CollectiveCall call = mine.on(*file, channel, Direction::write);
    call.caches = Caches::coherent;
    CollectiveTransfer transfer(call);
    SHIMA_TRY(transfer.start(MemberAccess{post, digest_of(post)}));
    if (channel.rank() != lost) return status_of(transfer.finish(0));
    // As the liveness service does (group/liveness/lookout.h).
    NodeSegment::attach(segment, 2, 1).value()->lost_word() = lost + 1;
    channel.end_transfer();
    const Outcome all = channel.agree({.code = Code::peer_lost, .rank = lost});
    channel.wait_for_transfers();
    return fail(all.code, "lost");
  }

  std::string path_;
};

TEST_F(LostNearMember, EndsTheCall) {
  const test::World world{.members = 4, .cores = 1, .nodes = 2};
  test::WorldGround ground(world);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world.members; ++rank)
    threads.emplace_back([&, rank] {
      ground.run_member(rank, [&](std::unique_ptr<Channel> channel) {
        const Status written = write(*channel, ground.segments[1].ref());
        ASSERT_FALSE(written.has_value());
        EXPECT_EQ(written.error().code, Code::peer_lost);
      });
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace shima
