// Requesters and a delegatee on shared memory: answers, errors, seats, sleep and wake-up.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/unique_fd.h"
#include "delegate/file_operations.h"
#include "delegate_world.h"

namespace shima::delegate {
namespace {

using namespace std::chrono_literals;

// A delegatee that serves in its own thread for the lifetime of the object.
class Serving {
 public:
  explicit Serving(World& world, DelegateeOptions options = {})
      : delegatee_(Delegatee::open(world.desk(), std::move(options)).value()) {
    offer_model(*delegatee_);
    EXPECT_TRUE(offer_file_operations(*delegatee_));
  }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;
  ~Serving() { end(); }

  void begin() {
    thread_ = std::thread([this] {
      const auto served = delegatee_->serve({});
      ASSERT_TRUE(served.has_value());
      served_ += *served;
    });
  }
  void pause() {
    if (!thread_.joinable()) return;
    delegatee_->stop();
    thread_.join();
  }
  void end() {
    pause();
    delegatee_.reset();
  }
  [[nodiscard]] Delegatee& delegatee() { return *delegatee_; }
  [[nodiscard]] std::uint64_t served() const { return served_; }

 private:
  std::unique_ptr<Delegatee> delegatee_;
  std::thread thread_;
  std::uint64_t served_ = 0;
};

std::unique_ptr<Requester> join(const World& world, RequesterOptions options = {}) {
  auto joined = Requester::join(world.desk(), options, 10s);
  EXPECT_TRUE(joined.has_value()) << describe(joined.error());
  return *std::move(joined);
}

Code code_of(const auto& result) { return result ? Code::ok : result.error().code; }

struct Mode {
  std::uint32_t spin_us;
  bool reaches;
};

class Delegation : public testing::TestWithParam<Mode> {};

TEST_P(Delegation, ManyRequestersGetTheModelsAnswers) {
  constexpr std::size_t requesters = 6;
  const auto [spin_us, reaches] = GetParam();
  World world(requesters);
  Serving serving(world, {.seats = requesters, .spin_us = spin_us, .admit = {}, .dismiss = {}});
  serving.begin();
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < requesters; ++i)
    threads.emplace_back([&, i] {
      const auto requester = join(world, {.inline_bytes = i * 100,
                                          .spin_us = spin_us,
                                          .reachable = reaches ? world.reachable() : Reachable{},
                                          .task = -1});
      // Memory out of reach limits a request to the size of a slot.
      const std::size_t share =
          reaches ? World::arena_bytes / requesters : ring_depth * most_inline;
      Asker asker(*requester, world.arena().subspan(i * share, share),
                  static_cast<std::uint32_t>(i));
      for (int burst = 0; burst < 150; ++burst) {
        const Status status = asker.burst();
        ASSERT_TRUE(status) << describe(status.error());
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Delegation, FilesHaveTheBytesOfAModel) {
  const auto [spin_us, reaches] = GetParam();
  World world(2);
  Serving serving(world, {.seats = 2, .spin_us = spin_us, .admit = {}, .dismiss = {}});
  serving.begin();
  const UniqueFd file(::open("file", O_RDWR | O_CREAT | O_TRUNC, 0600));
  const auto requester = join(world, {.inline_bytes = 500,
                                      .spin_us = spin_us,
                                      .reachable = reaches ? world.reachable() : Reachable{},
                                      .task = -1});
  std::vector<std::byte> model;
  std::mt19937 dice(7);
  const auto draw = [&](std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most)(dice);
  };
  for (int round = 0; round < 600; ++round) {
    const std::size_t at = draw(40000);
    const auto data = world.arena().first(round % 2 == 0 ? draw(700) : draw(20000));
    const auto offset = static_cast<std::int64_t>(at);
    if (draw(1) == 0) {
      fill(data, round);
      ASSERT_EQ(write_file(*requester, file.get(), data, offset).value(), std::ssize(data));
      if (!data.empty()) model.resize(std::max(model.size(), at + data.size()));
      std::ranges::copy(data, model.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      std::ranges::fill(data, std::byte{0xee});
      const std::size_t there = std::min(data.size(), model.size() - std::min(at, model.size()));
      ASSERT_EQ(read_file(*requester, file.get(), data, offset).value(),
                static_cast<std::int64_t>(there));
      const auto wanted = std::span(model).subspan(std::min(at, model.size()), there);
      ASSERT_TRUE(std::ranges::equal(data.first(there), wanted));
      ASSERT_TRUE(std::ranges::all_of(data.subspan(there), [](std::byte b) {
        return b == std::byte{0xee};
      })) << "bytes behind the end of the file were touched";
    }
  }
  EXPECT_TRUE(sync_file(*requester, file.get()));
}

INSTANTIATE_TEST_SUITE_P(Modes, Delegation,
                         testing::Values(Mode{0, true}, Mode{0, false}, Mode{30, true},
                                         Mode{30, false}),
                         [](const auto& mode) {
                           return std::string(mode.param.spin_us > 0 ? "spinning" : "sleeping") +
                                  (mode.param.reaches ? "_by_address" : "_inline");
                         });

TEST(Delegate, ErrorsOfHandlersAreTheRequesters) {
  World world(1);
  Serving serving(world, {.seats = 1, .spin_us = 0, .admit = {}, .dismiss = {}});
  ASSERT_TRUE(serving.delegatee().offer(
      40, [](const ReceivedRequest&) -> Result<std::optional<std::int64_t>> {
        return fail(Code::no_space, "as told", ENOSPC);
      }));
  ASSERT_TRUE(serving.delegatee().offer(
      41, [](const ReceivedRequest&) -> Result<std::optional<std::int64_t>> {
        throw std::bad_alloc();
      }));
  EXPECT_EQ(code_of(serving.delegatee().offer(-1, [](const ReceivedRequest&) { return 0; })),
            Code::bad_argument);
  EXPECT_EQ(
      code_of(serving.delegatee().offer(operation_count, [](const ReceivedRequest&) { return 0; })),
      Code::bad_argument);
  serving.begin();
  const auto requester = join(world);
  const auto full = requester->call({40, {}, {}, {}});
  EXPECT_EQ(code_of(full), Code::no_space);
  EXPECT_EQ(full.error().sys_errno, ENOSPC);
  EXPECT_EQ(code_of(requester->call({41, {}, {}, {}})), Code::no_memory);
  EXPECT_EQ(code_of(requester->call({200, {}, {}, {}})), Code::unsupported_operation);
  EXPECT_EQ(code_of(requester->call({0, {}, {}, {}})), Code::bad_argument);
  std::array<std::byte, 10> data{};
  const auto written = write_file(*requester, -1, data, 0);
  EXPECT_EQ(written.error().sys_errno, EBADF);
  EXPECT_EQ(requester->call({operation_sum, {}, data, {}}).value(), 0) << "it goes on after errors";
}

TEST(Delegate, WhatCannotBeReachedIsRefusedBeforeItIsSent) {
  World world(1);
  std::vector<std::byte> own(most_inline + 1);
  Serving serving(world, {.seats = 1, .spin_us = 0, .admit = {}, .dismiss = {}});
  serving.begin();
  const auto requester =
      join(world, {.inline_bytes = 0, .spin_us = 0, .reachable = {}, .task = -1});
  EXPECT_EQ(code_of(requester->call({operation_sum, {}, own, {}})), Code::bad_argument);
  const auto fits = requester->call(
      {operation_sum, {}, std::span(own).first(most_inline), PayloadDirection::both});
  EXPECT_TRUE(fits) << describe(fits.error());
}

TEST(Delegate, ARingTakesSoManyRequestsAndATicketOneAnswer) {
  World world(1);
  Serving serving(world, {.seats = 1, .spin_us = 0, .admit = {}, .dismiss = {}});
  const auto requester = join(world);
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < ring_depth; ++i)
    tickets.push_back(
        requester->start({operation_fill, {0, 0, 0}, {}, PayloadDirection::from_delegatee})
            .value());
  EXPECT_EQ(code_of(requester->start({operation_sum, {}, {}, {}})), Code::bad_count);
  EXPECT_FALSE(requester->is_done(tickets[3]).value()) << "nobody serves yet";
  serving.begin();
  EXPECT_TRUE(requester->wait(tickets[3]));
  EXPECT_EQ(code_of(requester->wait(tickets[3])), Code::bad_argument);
  EXPECT_EQ(code_of(requester->is_done(tickets[3])), Code::bad_argument);
  EXPECT_EQ(code_of(requester->start({operation_sum, {}, {}, {}})), Code::bad_count)
      << "the oldest is still under way";
  tickets.erase(tickets.begin() + 3);
  for (const Ticket ticket : tickets) EXPECT_TRUE(requester->wait(ticket));
  EXPECT_TRUE(requester->call({operation_sum, {}, {}, {}}));
}

TEST(Delegate, SeatsAreTakenGivenBackAndTakenAgain) {
  World world(3);
  Serving serving(world, {.seats = 3, .spin_us = 0, .admit = {}, .dismiss = {}});
  serving.begin();
  std::vector<std::unique_ptr<Requester>> seated;
  for (int i = 0; i < 3; ++i) seated.push_back(join(world));
  EXPECT_EQ(code_of(Requester::join(world.desk(), {}, 20ms)), Code::timed_out);
  for (int round = 0; round < 200; ++round) {
    const auto leaver = seated.begin() + round % 3;
    seated.erase(leaver);
    seated.push_back(join(world));
    for (const auto& one : seated)
      ASSERT_TRUE(one->call({operation_sum, {}, {}, {}})) << "round " << round;
  }
}

TEST(Delegate, ADeskThatIsNotOpenedOrTooSmall) {
  World world(1);
  EXPECT_EQ(code_of(Requester::join(world.desk(), {}, 20ms)), Code::timed_out);
  EXPECT_EQ(code_of(Requester::join(world.desk().first(10), {}, 20ms)), Code::bad_argument);
  EXPECT_EQ(code_of(Delegatee::open(world.desk().first(100), {})), Code::bad_argument);
  EXPECT_EQ(code_of(Delegatee::open(world.desk(),
                                    {.seats = 0, .spin_us = 0, .admit = {}, .dismiss = {}})),
            Code::bad_argument);
}

TEST(Delegate, WhoeverStillWaitsWhenTheDelegateeLeavesGetsAnError) {
  World world(2);
  Serving serving(world, {.seats = 2, .spin_us = 0, .admit = {}, .dismiss = {}});
  const auto waiting = join(world);
  const auto idle = join(world);
  const Ticket ticket = waiting->start({operation_sum, {}, {}, {}}).value();
  std::thread closer([&] {
    std::this_thread::sleep_for(5ms);
    serving.end();
  });
  EXPECT_EQ(code_of(waiting->wait(ticket)), Code::peer_lost);
  closer.join();
  EXPECT_EQ(code_of(waiting->start({operation_sum, {}, {}, {}})), Code::peer_lost);
  EXPECT_EQ(code_of(idle->call({operation_sum, {}, {}, {}})), Code::peer_lost);
  EXPECT_EQ(code_of(Requester::join(world.desk(), {}, 1s)), Code::peer_lost);
}

TEST(Delegate, WhatWasAnsweredBeforeTheDelegateeLeftIsNotLost) {
  World world(1);
  Serving serving(world, {.seats = 1, .spin_us = 0, .admit = {}, .dismiss = {}});
  const auto requester = join(world);
  const Ticket first = requester->start({operation_sum, {}, {}, {}}).value();
  ASSERT_EQ(serving.delegatee().serve(0ms).value(), 1U);
  const Ticket second = requester->start({operation_sum, {}, {}, {}}).value();
  serving.end();
  EXPECT_EQ(requester->wait(first).value(), 0);
  EXPECT_EQ(code_of(requester->wait(second)), Code::peer_lost);
}

TEST(Delegate, ServingEndsWhenNobodyAsksOrWhenToldTo) {
  World world(1);
  Serving serving(world, {.seats = 1, .spin_us = 0, .admit = {}, .dismiss = {}});
  EXPECT_EQ(serving.delegatee().serve(1ms).value(), 0U);
  serving.delegatee().stop();
  EXPECT_EQ(serving.delegatee().serve({}).value(), 0U) << "told before it began";
  serving.begin();
  {
    const auto requester = join(world);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(requester->call({operation_sum, {}, {}, {}}));
  }
  serving.pause();
  EXPECT_EQ(serving.served(), 5U);
}

TEST(Delegate, ARequesterThatIsNotAdmittedIsToldSo) {
  World world(1);
  std::atomic<bool> willing = false;
  std::atomic<int> guests = 0;
  Serving serving(world, {.seats = 1,
                          .spin_us = 0,
                          .admit = [&](const Holder& who) -> Status {
                            if (!willing || who.pid != ::getpid() || who.task != 11)
                              return fail(Code::access_denied, "not this one");
                            ++guests;
                            return {};
                          },
                          .dismiss = [&](const Holder& who) { guests -= who.task == 11 ? 1 : 0; }});
  serving.begin();
  const RequesterOptions options{.inline_bytes = 0, .spin_us = 0, .reachable = {}, .task = 11};
  {
    const auto requester = join(world, options);
    EXPECT_EQ(code_of(requester->call({operation_sum, {}, {}, {}})), Code::access_denied);
    EXPECT_EQ(code_of(requester->call({operation_sum, {}, {}, {}})), Code::access_denied);
  }
  willing = true;
  {
    const auto requester = join(world, options);
    EXPECT_TRUE(requester->call({operation_sum, {}, {}, {}}));
    EXPECT_EQ(guests, 1);
  }
  serving.end();
  EXPECT_EQ(guests, 0);
}

// Handlers that answer later, from another thread, in another order.
TEST(Delegate, ThatARequesterLeavesIsToldOnce) {
  World world(64);
  Serving serving(world);
  std::atomic<int> told{0};
  ASSERT_TRUE(serving.delegatee().offer(operation_left, [&](const ReceivedRequest& request) {
    if (request.requester.task == 7) ++told;
    return 0;
  }));
  serving.begin();
  for (int round = 1; round <= 5; ++round) {
    auto requester = join(world, {.reachable = {}, .task = 7});
    const auto answer = requester->call({operation_sum, {}, {}, {}});
    ASSERT_TRUE(answer) << describe(answer.error());
    EXPECT_EQ(code_of(requester->start({operation_left, {}, {}, {}})), Code::bad_argument);
    EXPECT_EQ(told, round - 1);
    requester.reset();
    while (told < round) std::this_thread::sleep_for(1ms);
  }
  serving.end();
  EXPECT_EQ(told, 5);
}

TEST(Delegate, AnswersCanComeLater) {
  World world(2);
  Serving serving(world, {.seats = 2, .spin_us = 0, .admit = {}, .dismiss = {}});
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<ReceivedRequest> kept;
  ASSERT_TRUE(serving.delegatee().offer(
      50, [&](const ReceivedRequest& request) -> Result<std::optional<std::int64_t>> {
        const std::lock_guard hold(mutex);
        kept.push_back(request);
        changed.notify_all();
        return std::nullopt;
      }));
  constexpr std::size_t rounds = 50;
  std::thread finisher([&] {
    for (std::size_t round = 0; round < rounds; ++round) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return kept.size() == ring_depth; });
      for (; !kept.empty(); kept.pop_back()) {
        fill(kept.back().payload, kept.back().arguments[0]);
        serving.delegatee().finish(kept.back(), std::ssize(kept.back().payload));
      }
    }
  });
  serving.begin();
  const auto requester = join(world);
  for (std::size_t round = 0; round < rounds; ++round) {
    std::array<std::array<std::byte, 20>, ring_depth> data{};
    std::vector<Ticket> tickets;
    for (std::size_t i = 0; i < ring_depth; ++i)
      tickets.push_back(requester
                            ->start({50,
                                     {static_cast<std::int64_t>(i), 0, 0},
                                     data[i],
                                     PayloadDirection::from_delegatee})
                            .value());
    for (std::size_t i = 0; i < ring_depth; ++i) {
      ASSERT_EQ(requester->wait(tickets[i]).value(), 20);
      std::array<std::byte, 20> wanted{};
      fill(wanted, static_cast<std::int64_t>(i));
      ASSERT_EQ(data[i], wanted);
    }
  }
  finisher.join();
}

}  // namespace
}  // namespace shima::delegate
