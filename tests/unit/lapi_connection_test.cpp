// A connection between two tasks of LAPI: its end, and the mark below which a receiver of large
// messages is not woken.
#include "lapi/stream/connection.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "lapi/stream/low_water.h"

namespace shima::lapi {
namespace {

constexpr std::size_t kib = 1024;

struct Ends {
  UniqueFd sender;
  UniqueFd receiver;
};

// `buffer_bytes`, if not 0: the receiver's, which the kernel does not enlarge then.
Ends connected(int buffer_bytes = 0) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (buffer_bytes != 0)
    ::setsockopt(listener.get(), SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t len = sizeof address;
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener.get(), place, len), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(::getsockname(listener.get(), place, &len), 0);
  Ends ends{UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), UniqueFd()};
  EXPECT_EQ(::connect(ends.sender.get(), place, len), 0);
  ends.receiver = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  return ends;
}

void send(const Ends& ends, std::size_t len_bytes) {
  const std::vector<std::byte> data(len_bytes);
  ASSERT_EQ(::send(ends.sender.get(), data.data(), len_bytes, 0), static_cast<ssize_t>(len_bytes));
}

bool wakes_within(const Ends& ends, int limit_ms) {
  pollfd watched{ends.receiver.get(), POLLIN, 0};
  return ::poll(&watched, 1, limit_ms) == 1;
}

std::size_t mark_of(int socket) {
  int bytes = 0;
  socklen_t len = sizeof bytes;
  EXPECT_EQ(::getsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &bytes, &len), 0);
  return static_cast<std::size_t>(bytes);
}

constexpr int soon_ms = 20'000;

TEST(LowWater, WakesForSoMuchOfALargeMessage) {
  const Ends ends = connected();
  LowWater mark;
  mark.expect(ends.receiver.get(), 1024 * kib);
  send(ends, 50 * kib);
  EXPECT_FALSE(wakes_within(ends, 50));
  send(ends, 80 * kib);
  EXPECT_TRUE(wakes_within(ends, soon_ms));
}

TEST(LowWater, WakesForEachByteAfterTheEndOfTheMessage) {
  const Ends ends = connected();
  LowWater mark;
  mark.expect(ends.receiver.get(), 1024 * kib);
  mark.expect(ends.receiver.get(), 0);
  send(ends, 1);
  EXPECT_TRUE(wakes_within(ends, soon_ms));
}

// The kernel neither lowers the mark of a new connection, nor forgets it.
TEST(LowWater, IsInForceUntilTheEndOfTheMessage) {
  const Ends ends = connected();
  LowWater mark;
  constexpr std::size_t rests[]{16 * 1024 * kib, 1024 * kib, 128 * kib, 100 * kib, 60 * kib, 0};
  constexpr std::size_t marks[]{128 * kib, 128 * kib, 128 * kib, 64 * kib, 1, 1};
  for (std::size_t i = 0; i < std::size(rests); ++i) {
    mark.expect(ends.receiver.get(), rests[i]);
    EXPECT_EQ(mark_of(ends.receiver.get()), marks[i]) << rests[i];
  }
}

// What does not come completely must be seen, too.
TEST(LowWater, WakesAtTheEndOfTheConnection) {
  Ends ends = connected();
  LowWater mark;
  mark.expect(ends.receiver.get(), 1024 * kib);
  send(ends, 1);
  ends.sender = UniqueFd();
  EXPECT_TRUE(wakes_within(ends, soon_ms));
}

TEST(LowWater, WakesBeforeTheMarkIfTheBufferIsFull) {
  const Ends ends = connected(16 * kib);
  LowWater mark;
  constexpr std::size_t all = 1024 * kib;
  std::thread sender([&] { send(ends, all); });
  std::vector<std::byte> room(all);
  for (std::size_t rest = all; rest > 0;) {
    mark.expect(ends.receiver.get(), rest);
    if (!wakes_within(ends, soon_ms)) {
      ADD_FAILURE() << rest << " bytes do not come";
      ::shutdown(ends.receiver.get(), SHUT_RDWR);
      break;
    }
    const ssize_t got = ::recv(ends.receiver.get(), room.data(), rest, MSG_DONTWAIT);
    if (got > 0) rest -= static_cast<std::size_t>(got);
  }
  sender.join();
}

TEST(LapiConnection, HasAMarkWhileMuchOfAMessageIsToCome) {
  Ends ends = connected();
  const int socket = ends.receiver.get();
  const UniqueFd epoll(::epoll_create1(0));
  Connection near(std::move(ends.receiver), epoll.get(), 1);
  std::vector<std::byte> room(300 * kib);
  std::size_t taken = 0;
  const auto pull_until = [&](std::size_t len_bytes) {
    const auto until = Clock::now() + std::chrono::milliseconds(soon_ms);
    while (taken < len_bytes && Clock::now() < until) {
      near.look();
      const iovec rest{room.data() + taken, room.size() - taken};
      taken += near.pull(std::span(&rest, 1));
    }
    return taken == len_bytes;
  };
  send(ends, 100 * kib);
  EXPECT_TRUE(pull_until(100 * kib));
  EXPECT_EQ(mark_of(socket), 128 * kib);
  send(ends, 200 * kib);
  EXPECT_TRUE(pull_until(300 * kib));
  EXPECT_EQ(mark_of(socket), 1U);
}

TEST(LapiConnection, AResetAfterTheLastMessageCutsNothing) {
  for (const bool has_last : {false, true}) {
    Ends ends = connected();
    const UniqueFd epoll(::epoll_create1(0));
    Connection near(std::move(ends.receiver), epoll.get(), 1);
    if (has_last) near.note_last();
    const linger at_once{1, 0};
    ASSERT_EQ(::setsockopt(ends.sender.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    ends.sender = {};
    const auto until = Clock::now() + std::chrono::seconds(5);
    while (!near.has_ended() && Clock::now() < until) near.look();
    EXPECT_TRUE(near.has_ended());
    EXPECT_EQ(near.is_cut(), !has_last);
  }
}

}  // namespace
}  // namespace shima::lapi
