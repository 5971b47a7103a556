// The core of the shared memory: protection tables and ranges against models, checks, and the ways
// over sockets between two memories of this process.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "dsm/memory.h"
#include "dsm/socket/socket_way.h"

namespace shima::dsm {
namespace {

TEST(DsmProtection, AgreesWithAModel) {
  constexpr std::uint64_t size = 5000;
  std::vector<std::uint64_t> words(ProtectionTable::table_bytes(size) / 8);
  ProtectionTable table(reinterpret_cast<std::byte*>(words.data()));
  std::array<Protection, size / granule_bytes + 1> model{};
  std::mt19937 dice(1);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t offset = dice() % size;
    const std::uint64_t len = dice() % (size - offset + 1);
    if (dice() % 16 == 0) {
      const auto protection = static_cast<Protection>(dice() % 6 == 0 ? dice() % 3 : 0);
      const Granules range{
          offset / granule_bytes,
          std::min<std::uint64_t>(dice() % 20, granules_in(size) - offset / granule_bytes)};
      table.set(range, protection);
      for (std::uint64_t g = 0; g < range.count; ++g) model[range.first + g] = protection;
      EXPECT_TRUE(table.is(range, protection));
    }
    bool reads = true;
    bool writes = true;
    for (std::uint64_t g = offset / granule_bytes;
         len > 0 && g <= (offset + len - 1) / granule_bytes; ++g) {
      reads &= model[g] != Protection::none;
      writes &= model[g] == Protection::read_write;
    }
    ASSERT_EQ(table.allows(offset, len, Access::read), reads) << offset << " " << len;
    ASSERT_EQ(table.allows(offset, len, Access::write), writes) << offset << " " << len;
  }
}

TEST(DsmRanges, NeverOverlapAndAreJoinedAgain) {
  constexpr std::uint64_t size = 100 * granule_bytes + 5;
  Ranges ranges(size);
  std::map<std::uint64_t, std::uint64_t> used;
  std::mt19937 dice(2);
  for (int i = 0; i < 5000; ++i) {
    if (dice() % 2 == 0 && !used.empty()) {
      auto at = used.begin();
      std::advance(at, dice() % used.size());
      const auto freed = ranges.release(at->first * granule_bytes);
      ASSERT_TRUE(freed.has_value());
      EXPECT_EQ(freed->count, at->second);
      used.erase(at);
      continue;
    }
    const std::uint64_t wanted = 1 + dice() % (20 * granule_bytes);
    const auto made = ranges.allocate(wanted);
    if (!made) continue;
    ASSERT_GE(made->count * granule_bytes, wanted);
    ASSERT_LE(made->first + made->count, size / granule_bytes);
    for (const auto& [first, count] : used)
      ASSERT_TRUE(made->first + made->count <= first || first + count <= made->first);
    used.emplace(made->first, made->count);
  }
  for (const auto& [first, count] : used)
    ASSERT_TRUE(ranges.release(first * granule_bytes).has_value());
  EXPECT_FALSE(ranges.release(0).has_value());
  EXPECT_EQ(ranges.allocate(size - 5).value().count, 100U);
  EXPECT_EQ(ranges.allocate(1).error().code, Code::no_memory);
}

std::span<std::byte> bytes_of(std::vector<std::uint8_t>& data) {
  return std::as_writable_bytes(std::span(data));
}

// Two tasks, whose segments this process has.
struct Pair {
  explicit Pair(std::uint64_t size, bool direct = true, bool apart = false) {
    auto a = Segment::make(size);
    auto b = Segment::make(size);
    const std::array<SegmentRef, 2> refs{a->ref(), b->ref()};
    first = std::make_unique<Memory>(*std::move(a), refs, Memory::Options{0, direct, apart});
    second = std::make_unique<Memory>(*std::move(b), refs, Memory::Options{1, direct, apart});
  }
  std::unique_ptr<Memory> first;
  std::unique_ptr<Memory> second;
};

TEST(DsmMemory, ChecksBeforeAnythingMoves) {
  Pair pair(4096 + 10);
  ASSERT_TRUE(pair.first->is_near(1));
  std::vector<std::uint8_t> data(200, 7);
  EXPECT_TRUE(pair.first->write(1, 3906, bytes_of(data), true).has_value());
  EXPECT_EQ(pair.second->own().data()[4105], std::byte{7});
  EXPECT_EQ(pair.first->write(1, 3907, bytes_of(data), true).error().code, Code::bad_count);
  EXPECT_EQ(pair.first->read(2, 0, bytes_of(data)).error().code, Code::bad_count);
  EXPECT_EQ(pair.first->read(-1, 0, bytes_of(data)).error().code, Code::bad_count);
  ASSERT_TRUE(pair.second->protect(4096, 10, Protection::read_only).has_value());
  EXPECT_EQ(pair.first->write(1, 3906, bytes_of(data), true).error().code, Code::access_denied);
  EXPECT_TRUE(pair.first->read(1, 3906, bytes_of(data)).has_value());
  EXPECT_EQ(pair.first->rmw(1, 4096, {}).error().code, Code::access_denied);
  EXPECT_EQ(pair.first->rmw(1, 4, {}).error().code, Code::bad_argument);
  EXPECT_EQ(pair.first->rmw(1, 8, {FETCH_AND_ADD, 64, {5, 0}}).value(), 0U);
  EXPECT_EQ(pair.second->rmw(1, 8, {COMPARE_AND_SWAP, 64, {5, 6}}).value(), 1U);
  pair.second->show_left();
  EXPECT_EQ(pair.first->read(1, 0, bytes_of(data)).error().code, Code::peer_lost);
  pair.second->note_loss(0);
  EXPECT_EQ(pair.second->read(0, 0, bytes_of(data)).error().code, Code::peer_lost);
}

TEST(DsmMemory, ATaskElsewhereIsToldOfChanges) {
  Pair pair(1 << 20, true, true);
  ASSERT_FALSE(pair.first->is_near(1));
  int told = 0;
  pair.second->set_tell([&](Granules range, Protection protection) -> Status {
    ++told;
    EXPECT_TRUE(pair.first->note_change(1, range, protection));
    return {};
  });
  const std::uint64_t at = pair.second->allocate(100, Protection::read_only).value();
  EXPECT_EQ(told, 1);
  std::vector<std::uint8_t> data(8);
  EXPECT_EQ(pair.first->write(1, at, bytes_of(data), false).error().code, Code::access_denied);
  ASSERT_TRUE(pair.second->protect(at, 128, Protection::read_only).has_value());
  EXPECT_EQ(told, 1) << "nothing has changed";
  EXPECT_FALSE(pair.first->note_change(1, {1 << 20, 1}, Protection::none));
  EXPECT_FALSE(pair.first->note_change(1, {0, ~std::uint64_t{0}}, Protection::none));
  EXPECT_FALSE(pair.first->note_change(1, {0, 1}, static_cast<Protection>(3)));
  EXPECT_FALSE(pair.first->note_change(0, {0, 1}, Protection::none)) << "of its own memory";
  EXPECT_FALSE(pair.first->note_change(5, {0, 1}, Protection::none));
}

TEST(DsmMemory, AChangeThatCouldNotBeToldIsToldAgain) {
  Pair pair(1 << 20, true, true);
  int told = 0;
  pair.second->set_tell([&](Granules, Protection) -> Status {
    if (++told == 1) return fail(Code::internal, "not told");
    return {};
  });
  EXPECT_FALSE(pair.second->allocate(100, Protection::read_only).has_value());
  EXPECT_TRUE(pair.second->protect(0, 128, Protection::read_only).has_value());
  EXPECT_EQ(told, 2) << "the other task's copy differs";
  EXPECT_EQ(pair.second->allocate(100, Protection::read_only).value(), 0U) << "the range is free";
}

SocketAddress loopback() {
  SocketAddress address{};
  auto* const plain = reinterpret_cast<sockaddr_in*>(&address);
  plain->sin_family = AF_INET;
  plain->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

enum class By : std::uint8_t { tcp, tcp_spinning, udp };

class DsmSockets : public testing::TestWithParam<By> {
 protected:
  static constexpr std::uint64_t size = 1 << 20;

  void SetUp() override {
    const auto serve = GetParam() == By::udp ? serve_by_udp : serve_by_tcp;
    const std::array<SocketAddress, 1> places{loopback()};
    std::array<std::unique_ptr<SocketWay>, 2> ways;
    for (int task = 0; task < 2; ++task)
      ways[static_cast<std::size_t>(task)] =
          serve(memory(task).own(), 2, {.task = task, .spins = GetParam() != By::tcp}, places)
              .value();
    const std::array<ServiceAddress, 2> all{ways[0]->address(), ways[1]->address()};
    endpoint_ = all[0].endpoints[0];
    for (int task = 0; task < 2; ++task) {
      auto& way = ways[static_cast<std::size_t>(task)];
      ASSERT_TRUE(way->connect(all).has_value());
      memory(task).set_way(std::move(way));
    }
  }
  Memory& memory(int task) { return task == 0 ? *pair_.first : *pair_.second; }

  Pair pair_{size, false};
  SocketAddress endpoint_{};
};

TEST_P(DsmSockets, AgreesWithAModel) {
  const auto run = [&](int task, std::uint64_t begin, std::uint64_t end, unsigned seed) {
    std::vector<std::uint8_t> model(end - begin);
    std::mt19937 dice(seed);
    std::vector<std::uint8_t> data;
    for (int i = 0; i < 400; ++i) {
      data.resize(dice() % (i % 10 == 0 ? 150000 : 300));
      const std::uint64_t at = dice() % (model.size() - data.size());
      if (dice() % 2 == 0) {
        for (auto& byte : data) byte = static_cast<std::uint8_t>(dice());
        // A write of UDP that is not acknowledged may be lost.
        ASSERT_TRUE(memory(task)
                        .write(1 - task, begin + at, bytes_of(data),
                               GetParam() == By::udp || dice() % 2 == 0)
                        .has_value());
        std::ranges::copy(data, model.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        ASSERT_TRUE(memory(task).read(1 - task, begin + at, bytes_of(data)).has_value());
        ASSERT_TRUE(std::ranges::equal(data, std::span(model).subspan(at, data.size())));
      }
      if (i % 50 == 0) {
        ASSERT_TRUE(memory(task).fence().has_value());
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i)
    threads.emplace_back(run, static_cast<int>(i % 2), i / 2 * size / 2, (i / 2 + 1) * size / 2, i);
  for (std::thread& thread : threads) thread.join();
}

TEST_P(DsmSockets, AtomicOperationsAreDoneOnce) {
  const auto add = [&](int task) {
    for (int i = 0; i < 2000; ++i)
      ASSERT_TRUE(memory(task).rmw(1, 64, {FETCH_AND_ADD, 64, {1, 0}}).has_value());
  };
  std::array<std::thread, 3> threads{std::thread(add, 0), std::thread(add, 0), std::thread(add, 1)};
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory(0).rmw(1, 64, {}).value(), 6000U);
}

TEST_P(DsmSockets, ABurstIsCountedAndStrangersAreDropped) {
  const int stranger = ::socket(AF_INET, GetParam() == By::udp ? SOCK_DGRAM : SOCK_STREAM, 0);
  std::array<char, 300> words{};
  std::ignore = ::connect(stranger, as_sockaddr(endpoint_), length_of(endpoint_));
  std::ignore = ::send(stranger, words.data(), words.size(), MSG_NOSIGNAL);
  std::vector<std::uint8_t> data(size, 1);
  for (int i = 0; i < 50; ++i)
    ASSERT_TRUE(memory(0).write(1, 0, bytes_of(data), false).has_value());
  ASSERT_TRUE(memory(0).fence().has_value());
  std::vector<std::uint8_t> back(size);
  ASSERT_TRUE(memory(0).read(1, 0, bytes_of(back)).has_value());
  const auto missing = static_cast<std::uint64_t>(std::ranges::count(back, 0));
  EXPECT_LE(missing, memory(0).lost_bytes());
  EXPECT_LE(memory(0).lost_bytes(), 50 * size);
  if (GetParam() != By::udp) {
    EXPECT_EQ(memory(0).lost_bytes(), 0U);
  }
  ::close(stranger);
}

TEST_P(DsmSockets, AServerRefusesWhatItsTableForbids) {
  // The requester's check would find it first: it does not know of the change.
  Pair apart(size, false, true);
  const auto serve = GetParam() == By::udp ? serve_by_udp : serve_by_tcp;
  const std::array<SocketAddress, 1> places{loopback()};
  auto first = serve(apart.first->own(), 2, {.task = 0}, places).value();
  auto second = serve(apart.second->own(), 2, {.task = 1}, places).value();
  const std::array<ServiceAddress, 2> all{first->address(), second->address()};
  ASSERT_TRUE(first->connect(all).has_value());
  apart.first->set_way(std::move(first));
  ASSERT_TRUE(apart.second->protect(0, 128, Protection::none).has_value());
  std::vector<std::uint8_t> data(100, 1);
  EXPECT_EQ(apart.first->read(1, 64, bytes_of(data)).error().code, Code::access_denied);
  EXPECT_EQ(apart.first->write(1, 64, bytes_of(data), true).error().code, Code::access_denied);
  EXPECT_EQ(apart.first->rmw(1, 64, {}).error().code, Code::access_denied);
  EXPECT_TRUE(apart.first->write(1, 64, bytes_of(data), false).has_value());
  EXPECT_EQ(apart.first->fence().error().code, Code::access_denied);
  EXPECT_TRUE(apart.first->fence().has_value()) << "told once";
  EXPECT_EQ(apart.second->own().data()[64], std::byte{0});
  EXPECT_TRUE(apart.first->write(1, 128, bytes_of(data), true).has_value());
  second.reset();
  EXPECT_EQ(apart.first->read(1, 128, bytes_of(data)).error().code, Code::peer_lost);
}

// A member of the job that sends anything: the server refuses it, or does what is allowed.
TEST_P(DsmSockets, ArbitraryRequestsDoNoHarm) {
  const auto serve = GetParam() == By::udp ? serve_by_udp : serve_by_tcp;
  const std::array<SocketAddress, 1> places{loopback()};
  constexpr std::uint64_t small = 4096;
  Pair pair(small, false);
  const auto way = serve(pair.first->own(), 2, {.task = 0}, places).value();
  const ServiceAddress address = way->address();
  std::mt19937_64 dice(7);
  const auto random_request = [&] {
    const std::uint64_t near = dice() % (2 * small);
    const std::array<std::uint64_t, 4> numbers{0, near, dice(), ~near};
    return Request{static_cast<Request::Kind>(dice() % 7),
                   static_cast<std::uint32_t>(dice() % 4 == 0 ? dice() : dice() % 4 | 64U << 8),
                   numbers[dice() % 4],
                   dice() % 2 == 0 ? 8 : numbers[dice() % 4],
                   {dice(), dice()}};
  };
  for (int round = 0; round < 200; ++round) {
    UniqueFd socket;
    if (GetParam() == By::udp) {
      socket = UniqueFd(::socket(AF_INET, SOCK_DGRAM, 0));
      ASSERT_EQ(::connect(socket.get(), as_sockaddr(address.endpoints[0]),
                          length_of(address.endpoints[0])),
                0);
    } else if (round < 1) {  // it admits as many as there are other tasks
      socket = connect_to(address, std::chrono::seconds(1)).value();
    } else {
      break;
    }
    for (int i = 0; i < 20; ++i) {
      struct {
        ServiceAddress::Secret secret;
        std::uint64_t task;
        std::uint64_t number;
        Request request;
        std::array<std::uint64_t, 4> data;
      } datagram{address.asker, dice() % 3, dice() % 3 == 0 ? 0 : dice(), random_request(), {}};
      const std::size_t len = dice() % 4 == 0 ? dice() % sizeof datagram : sizeof datagram;
      const bool is_sent =
          GetParam() == By::udp
              ? ::send(socket.get(), &datagram, len, MSG_NOSIGNAL) >= 0
              : ::send(socket.get(), &datagram.request, sizeof(Request), MSG_NOSIGNAL) >= 0;
      if (!is_sent) break;
    }
  }
}

// More silent strangers than there is patience for one after the other.
TEST_P(DsmSockets, SilentStrangersDoNotDelayATask) {
  Pair pair(size, false);
  const auto serve = GetParam() == By::udp ? serve_by_udp : serve_by_tcp;
  const std::array<SocketAddress, 1> places{loopback()};
  auto first = serve(pair.first->own(), 2, {.task = 0}, places).value();
  const auto second = serve(pair.second->own(), 2, {.task = 1}, places).value();
  const std::array<ServiceAddress, 2> all{first->address(), second->address()};
  std::vector<UniqueFd> strangers(20);
  for (UniqueFd& stranger : strangers) {
    stranger = UniqueFd(::socket(AF_INET, GetParam() == By::udp ? SOCK_DGRAM : SOCK_STREAM, 0));
    ASSERT_EQ(
        ::connect(stranger.get(), as_sockaddr(all[1].endpoints[0]), length_of(all[1].endpoints[0])),
        0);
  }
  ASSERT_TRUE(first->connect(all).has_value());
  std::vector<std::uint8_t> data(100);
  EXPECT_TRUE(first->read(1, 64, bytes_of(data)).has_value());
}

TEST_P(DsmSockets, AnAddressThatDoesNotAnswerIsPassedOver) {
  Pair pair(size, false);
  const auto serve = GetParam() == By::udp ? serve_by_udp : serve_by_tcp;
  const std::array<SocketAddress, 2> places{loopback(), loopback()};
  auto first = serve(pair.first->own(), 2, {.task = 0}, places).value();
  const auto second = serve(pair.second->own(), 2, {.task = 1}, places).value();
  std::array<ServiceAddress, 2> all{first->address(), second->address()};
  ASSERT_EQ(all[1].endpoint_count, 2U);
  const UniqueFd mute(::socket(AF_INET, GetParam() == By::udp ? SOCK_DGRAM : SOCK_STREAM, 0));
  SocketAddress& address = all[1].endpoints[0];
  socklen_t len = sizeof address;
  address = loopback();
  ASSERT_EQ(::bind(mute.get(), as_sockaddr(address), length_of(address)), 0);
  ASSERT_EQ(::getsockname(mute.get(), reinterpret_cast<sockaddr*>(&address), &len), 0);
  ASSERT_TRUE(first->connect(all).has_value());
  std::vector<std::uint8_t> data(100);
  EXPECT_TRUE(first->read(1, 64, bytes_of(data)).has_value());
}

INSTANTIATE_TEST_SUITE_P(Ways, DsmSockets, testing::Values(By::tcp, By::tcp_spinning, By::udp),
                         [](const auto& way) {
                           return way.param == By::tcp   ? "tcp"
                                  : way.param == By::udp ? "udp"
                                                         : "tcp_spinning";
                         });

}  // namespace
}  // namespace shima::dsm
