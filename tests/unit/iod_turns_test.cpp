// Windows of collective calls that an I/O node directs take their turns among the requests of all
// clients, and the calls themselves take memory of their key; and a user's calls that will never
// begin do not displace those of others.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/page_size.h"
#include "base/unique_fd.h"
#include "collective/plan/plan.h"
#include "directed_by_hand.h"
#include "iod/call_table.h"

namespace shima::iod {
namespace {

using std::chrono::milliseconds;

bool comes(auto condition, milliseconds longest = milliseconds(10'000)) {
  const auto until = Clock::now() + longest;
  while (!condition()) {
    if (Clock::now() > until) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

class IodTurns : public testing::Test {
 protected:
  IodTurns() {
    std::filesystem::resize_file(path_, 0);  // of a run that was killed
    file_.start_tallies();
  }
  ~IodTurns() override { std::filesystem::remove(path_); }

  // A client's end of a connection, and the thread that takes part for it.
  struct Client {
    explicit Client(FairQueue::Process its_process) : process(std::move(its_process)) {
      std::array<int, 2> ends{};
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
      here = UniqueFd(ends[0]);
      there = UniqueFd(ends[1]);
    }
    FairQueue::Process process;
    UniqueFd here;
    UniqueFd there;
  };
  Result<CallEnd> take_part(Client& client, const DirectedCall& call) {
    const CallTable::Seat seat{.from = {client.there.get(), client.process, memory_, {}},
                               .identity = {.device = 1, .inode = 2},
                               .file = file_,
                               .moved = [this](std::uint64_t bytes) { counted_bytes_ += bytes; }};
    return calls_.take_part(call, seat);
  }

  static DirectedCall call(std::uint64_t id, std::uint32_t participants) {
    return {.id = id,
            .participants = participants,
            .writes = 1,
            .window_bytes = window_bytes,
            .granule_bytes = 4096,
            .range = {{0}, {window_count * as_signed(window_bytes)}}};
  }
  static WindowId window(std::int64_t number) {
    return number < window_count ? WindowId{.number = number} : WindowId{};
  }
  // As the message of the only window, from each once it is granted, in whichever order.
  static void ask_for_every_second_granule(std::deque<MessageStream>& streams,
                                           const DirectedCall& call) {
    constexpr auto grants = static_cast<std::uint32_t>(Lane::grant);
    const std::size_t words = call.window_bytes / call.granule_bytes / 64;
    for (MessageStream& stream : streams) stream.expect(grants, MessageBuffer(sizeof(WindowGrant)));
    for (std::size_t asked = 0; asked < streams.size(); ::usleep(100)) {
      for (MessageStream& stream : streams) {
        stream.progress();
        if (!stream.take(grants, 0)) continue;
        MessageBuffer message(sizeof(WindowHead) + (1 + words) * sizeof(std::uint64_t));
        std::span<std::byte> out = message.bytes();
        put_into(out, WindowHead{{.number = 0}, {}});
        put_into(out, std::uint64_t{0});  // words of bits follow
        for (std::size_t i = 0; i < words; ++i) put_into(out, std::uint64_t{0x5555555555555555});
        stream.send(static_cast<std::uint32_t>(Lane::to_agent), std::move(message));
        ++asked;
      }
    }
  }
  // Sends all windows.
  static Code write_all(const Client& client) {
    MessageStream stream(client.here.get());
    by_hand::request(stream, window(0), window(1));
    for (std::int64_t number = 0; number < window_count; ++number)
      by_hand::send_run(stream, {window(number), window(number + 2)}, window_bytes / 4096,
                        window_bytes, std::byte{1});
    return by_hand::end_of(stream);
  }

  static constexpr std::uint64_t window_bytes = 65536;  // written by a thread of its own
  static constexpr std::int64_t window_count = 8;

  std::string path_ = "turns.data";
  LogicalFile file_ =
      LogicalFile::open({.path = path_, .read = true, .write = true, .create = true}).value();
  FairQueue queue_{1};
  CallTable calls_{queue_, milliseconds(200)};
  // Two calls that write need more.
  std::shared_ptr<Allowance> memory_ = std::make_shared<Allowance>(std::size_t{3} << 19);
  std::atomic<std::uint64_t> counted_bytes_ = 0;
};

// For longer than a client may take for its part.
TEST_F(IodTurns, AWindowWaitsForItsTurn) {
  Client client({"user", "job"});
  const FairQueue::Process other{"user", "other"};
  auto place = std::unique_ptr<FairQueue::Place>(new FairQueue::Place(queue_.enter(other)));
  std::thread serving([&] { EXPECT_TRUE(take_part(client, call(1, 1)).has_value()); });
  std::thread writing([&] { EXPECT_EQ(write_all(client), Code::ok); });
  EXPECT_TRUE(comes([&] { return queue_.load().waiting == 1; }));
  std::this_thread::sleep_for(milliseconds(500));
  EXPECT_EQ(std::filesystem::file_size(path_), 0U);
  EXPECT_EQ(counted_bytes_, 0U);
  place.reset();
  writing.join();
  serving.join();
  EXPECT_EQ(std::filesystem::file_size(path_), window_bytes * window_count);
  EXPECT_EQ(counted_bytes_, window_bytes * window_count);
}

TEST_F(IodTurns, ARequestWaitsForOneWindowAtMost) {
  for (const char* user : {"user", "another"}) {
    std::filesystem::resize_file(path_, 0);
    Client client({"user", "job"});
    const FairQueue::Process first{"user", "first"};
    const FairQueue::Process other{user, "other"};
    auto place = std::unique_ptr<FairQueue::Place>(new FairQueue::Place(queue_.enter(first)));
    std::thread serving([&] { EXPECT_TRUE(take_part(client, call(1, 1)).has_value()); });
    std::thread writing([&] { EXPECT_EQ(write_all(client), Code::ok); });
    EXPECT_TRUE(comes([&] { return queue_.load().waiting == 1; }));
    std::uint64_t written_bytes = 0;
    std::thread asking([&] {
      const FairQueue::Place own = queue_.enter(other);
      written_bytes = std::filesystem::file_size(path_);
    });
    EXPECT_TRUE(comes([&] { return queue_.load().waiting == 2; }));
    place.reset();
    asking.join();
    EXPECT_LE(written_bytes, window_bytes) << user;
    writing.join();
    serving.join();
    EXPECT_EQ(std::filesystem::file_size(path_), window_bytes * window_count);
  }
}

TEST_F(IodTurns, ACallWaitsForTheMemoryOfAnother) {
  Client first({"user", "first"});
  Client second({"user", "second"});
  const FairQueue::Process other{"user", "other"};
  auto place = std::unique_ptr<FairQueue::Place>(new FairQueue::Place(queue_.enter(other)));
  std::thread serving([&] { EXPECT_TRUE(take_part(first, call(1, 1)).has_value()); });
  std::thread writing([&] { EXPECT_EQ(write_all(first), Code::ok); });
  EXPECT_TRUE(comes([&] { return queue_.load().waiting == 1; }));
  const std::size_t used_bytes = memory_->used_bytes();
  EXPECT_GE(used_bytes, 2 * window_bytes);
  std::thread serving_second([&] { EXPECT_TRUE(take_part(second, call(2, 1)).has_value()); });
  std::thread writing_second([&] { EXPECT_EQ(write_all(second), Code::ok); });
  EXPECT_TRUE(comes([&] { return memory_->is_short(); }));
  EXPECT_EQ(memory_->used_bytes(), used_bytes);
  EXPECT_EQ(queue_.load().waiting, 1U);
  place.reset();
  for (std::thread* one : {&writing, &serving, &writing_second, &serving_second}) one->join();
  EXPECT_EQ(memory_->used_bytes(), 0U);
}

TEST_F(IodTurns, ACallIsRefusedThatNeedsMoreThanThereIs) {
  Client client({"user", "job"});
  DirectedCall large = call(1, 1);
  large.window_bytes = most_io_node_window_bytes;
  large.range.end.value = as_signed(2 * most_io_node_window_bytes);
  std::thread serving([&] {
    const auto ended = take_part(client, large);
    ASSERT_FALSE(ended.has_value());
    EXPECT_EQ(ended.error().code, Code::no_memory);
  });
  {
    MessageStream stream(client.here.get());
    EXPECT_EQ(by_hand::end_of(stream), Code::no_memory);
  }
  client.here = {};
  serving.join();
  EXPECT_EQ(memory_->used_bytes(), 0U);
}

TEST_F(IodTurns, AFailedCallKeepsNoMemoryWhileItsClientStays) {
  Client client({"user", "job"});
  std::thread serving([&] { EXPECT_FALSE(take_part(client, call(1, 1)).has_value()); });
  {
    MessageStream stream(client.here.get());
    by_hand::request(stream, {.number = window_count});  // beyond the range
    EXPECT_NE(by_hand::end_of(stream), Code::ok);
  }
  EXPECT_TRUE(comes([&] { return memory_->used_bytes() == 0; }, milliseconds(2000)));
  client.here = {};
  serving.join();
}

std::size_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  in >> all >> resident;
  return resident * page_size();
}

// All want the same small pieces, which are copied, and read nothing.
TEST_F(IodTurns, ClientsThatReadNothingMakeNoCopiesForAll) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "memory of the sanitizer";
#endif
  constexpr std::uint32_t count = 30;
  constexpr std::uint64_t large = most_io_node_window_bytes;
  std::filesystem::resize_file(path_, large);
  const DirectedCall reads{.id = 1,
                           .participants = count,
                           .window_bytes = large,
                           .granule_bytes = 1024,
                           .range = {{0}, {as_signed(large)}}};
  const auto memory = std::make_shared<Allowance>(std::size_t{64} << 20);
  CallTable calls(queue_, milliseconds(60'000));
  std::deque<Client> clients;
  std::deque<MessageStream> streams;
  std::vector<std::thread> serving;
  for (std::uint32_t i = 0; i < count; ++i) {
    Client& client = clients.emplace_back(FairQueue::Process{"user", "job"});
    streams.emplace_back(client.here.get());
    serving.emplace_back([&] {
      const CallTable::Seat seat{.from = {client.there.get(), client.process, memory, {}},
                                 .identity = {.device = 1, .inode = 2},
                                 .file = file_};
      EXPECT_FALSE(calls.take_part(reads, seat).has_value());
    });
    by_hand::request(streams.back(), {.number = 0});
  }
  const std::size_t before = resident_bytes();
  ask_for_every_second_granule(streams, reads);
  EXPECT_TRUE(comes([&] {
    return std::ranges::any_of(clients, [](const Client& one) {
      std::byte next{};
      return ::recv(one.here.get(), &next, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
    });
  }));
  std::this_thread::sleep_for(milliseconds(50));  // the copies of all would be made by then
  const std::size_t grown = resident_bytes() - std::min(before, resident_bytes());
  EXPECT_LT(grown, memory->used_bytes() + (std::size_t{8} << 20));
  for (Client& client : clients) client.here = {};
  for (std::thread& one : serving) one.join();
}

TEST_F(IodTurns, AUserDoesNotDisplaceCallsThatOthersHaveLeft) {
  const auto leave = [&](const char* user, std::uint64_t id) {
    Client client({user, "job"});
    client.here = {};
    EXPECT_FALSE(take_part(client, call(id, 2)).has_value());
  };
  leave("late", 1);
  for (std::uint64_t id = 2; id < 500; ++id) leave("other", id);
  Client late({"late", "job"});
  std::atomic<bool> has_ended = false;
  std::thread serving([&] {
    const auto ended = take_part(late, call(1, 2));
    has_ended = true;
    ASSERT_FALSE(ended.has_value());
    EXPECT_EQ(ended.error().code, Code::cancelled);
  });
  MessageStream stream(late.here.get());
  const std::uint64_t end = stream.expect(end_lane, MessageBuffer(most_end_bytes));
  std::optional<MessageBuffer> told;
  EXPECT_TRUE(comes([&] {
    stream.progress();
    told = stream.take(end_lane, end);
    return told.has_value();
  })) << "it waits for a process that has left";
  late.here = {};
  serving.join();
  EXPECT_TRUE(has_ended);
}

}  // namespace
}  // namespace shima::iod
