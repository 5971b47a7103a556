// An agent exchanges messages while a thread of its own writes or reads a window. The tests hold
// that thread back until something else has happened.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <numeric>

#include "collective/run.h"
#include "member_call.h"
#include "members.h"

namespace shima {
namespace {

using test::PostOffice;

constexpr std::uint64_t window_bytes = 64 * 1024;
constexpr std::uint64_t windows = 4;
constexpr std::uint64_t len_bytes = windows * window_bytes;
const Tuning tuning{.path = Path::message, .max_agents = 1, .window_bytes = window_bytes};

// Returns whether it became true.
bool wait_for(const std::function<bool()>& ready) {
  const auto until = Clock::now() + std::chrono::seconds(60);
  while (!ready() && Clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return ready();
}

MemberAccess access_to(std::vector<std::byte>& buffer) {
  if (buffer.empty()) return {};
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(buffer.data()));
  const Pattern block = Pattern::contiguous(buffer.size());
  const Post post = make_post({block, 0, 0, buffer.size()}, {block, address, 0, buffer.size()});
  return {post, digest_of(post)};
}

// Rank 0 is the only agent. The last rank, on the other node, has all bytes.
class DiskOverlap : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / ("shima_disk_" + std::to_string(::getpid()));
    bytes_.resize(len_bytes);
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<std::byte>(i * 7 >> 8);
    auto file = LogicalFile::open({.path = path_, .write = true, .create = true});
    ASSERT_TRUE(file->write(FileOffset{0}, bytes_.data(), bytes_.size()).has_value());
  }
  void TearDown() override { std::filesystem::remove(path_); }

  // `hold_back` runs in the agent's thread before its first window.
  Result<CollectiveResult> move(Direction direction, Channel& channel,
                                std::vector<std::byte>& buffer, bool may_write,
                                const std::function<void()>& hold_back) {
    auto file = LogicalFile::open({.path = path_, .read = true, .write = may_write});
    MemberCall mine(tuning, hold_back);
    const CollectiveCall call = mine.on(*file, channel, direction);
    CollectiveTransfer transfer(call);
    SHIMA_TRY(transfer.start(access_to(buffer)));
    auto moved = transfer.finish(0);
    EXPECT_TRUE(mine.disk.ended());
    if (moved) {
      EXPECT_EQ(mine.counters.windows, channel.rank() == 0 ? windows : 0);
    }
    return moved;
  }

  static void run(const test::World& world,
                  const std::function<void(Channel&, PostOffice&)>& body) {
    test::WorldGround ground(world);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < world.members; ++rank)
      threads.emplace_back([&, rank] {
        ground.run_member(rank, [&](std::unique_ptr<Channel> channel) {
          body(*channel, ground.network.messages);
        });
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(ground.network.messages.is_empty());
  }

  // The thread waits for the message of the second window.
  void check_overlap(Direction direction) {
    std::vector<std::byte> buffer = direction == Direction::write
                                        ? std::vector<std::byte>(len_bytes, std::byte{3})
                                        : std::vector<std::byte>(len_bytes);
    std::vector<std::byte> none;
    std::atomic<int> held_back = 0;
    run({.members = 2, .nodes = 2}, [&](Channel& channel, PostOffice& messages) {
      const auto hold_back = [&] {
        ++held_back;
        EXPECT_TRUE(wait_for([&] { return messages.traffic()[{1, 0}].messages >= 3; }));
      };
      const auto moved =
          move(direction, channel, channel.rank() == 1 ? buffer : none, true, hold_back);
      EXPECT_TRUE(moved.has_value());
    });
    EXPECT_EQ(held_back, 1);
    if (direction == Direction::read) {
      EXPECT_TRUE(buffer == bytes_);
      return;
    }
    auto file = LogicalFile::open({.path = path_, .read = true});
    std::vector<std::byte> found(len_bytes);
    EXPECT_EQ(file->read(FileOffset{0}, found.data(), len_bytes).value(), len_bytes);
    EXPECT_TRUE(found == buffer);
  }

  std::string path_;
  std::vector<std::byte> bytes_;
};

TEST_F(DiskOverlap, NextWindowArrivesDuringWrite) { check_overlap(Direction::write); }

TEST_F(DiskOverlap, NextWindowIsAskedForDuringRead) { check_overlap(Direction::read); }

TEST_F(DiskOverlap, ErrorReachesAll) {
  std::vector<std::byte> buffer(len_bytes);
  std::vector<std::byte> none;
  run({.members = 3, .nodes = 2}, [&](Channel& channel, PostOffice&) {
    const auto moved =
        move(Direction::write, channel, channel.rank() == 2 ? buffer : none, false, [] {});
    EXPECT_FALSE(moved.has_value());
  });
}

// Rank 1 quits during the write, which fails. Nothing else fails, so the error must be the disk's.
TEST_F(DiskOverlap, ErrorIsKeptIfTheTransferIsQuit) {
  std::vector<std::byte> buffer(len_bytes);
  std::vector<std::byte> none;
  std::atomic<bool> at_disk = false;
  std::atomic<bool> has_quit = false;
  run({.members = 3, .nodes = 2}, [&](Channel& channel, PostOffice&) {
    if (channel.rank() != 1) {
      const auto hold_back = [&] {
        at_disk = true;
        EXPECT_TRUE(wait_for([&] { return has_quit.load(); }));
      };
      const auto moved =
          move(Direction::write, channel, channel.rank() == 2 ? buffer : none, false, hold_back);
      EXPECT_FALSE(moved.has_value());
      return;
    }
    auto file = LogicalFile::open({.path = path_, .read = true});
    MemberCall mine(tuning);
    const CollectiveCall call = mine.on(*file, channel, Direction::write);
    CollectiveTransfer transfer(call);
    ASSERT_TRUE(transfer.start(access_to(none)).has_value());
    EXPECT_TRUE(wait_for([&] { return at_disk.load(); }));
    channel.quit_transfer();
    channel.end_transfer();
    has_quit = true;
    EXPECT_NE(channel.agree({}).code, Code::ok);
    channel.wait_for_transfers();
  });
}

}  // namespace
}  // namespace shima
