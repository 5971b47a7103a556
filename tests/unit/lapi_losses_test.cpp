// What a task of LAPI learns if another one leaves, is lost, or sends what no task sends.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "lapi_tasks.h"
#include "raw_lapi_task.h"

namespace shima::lapi {
namespace {

using LapiLosses = LapiTasks;

TEST_P(LapiLosses, AWaitOutlastsATaskThatLeavesWhileAnotherLives) {
  start();
  ASSERT_TRUE(all_[2]->engine->finish());
  all_[2]->engine.reset();
  lapi_cntr_t arrived{};
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::vector<std::byte> none;
    EXPECT_TRUE(all_[1]->engine->put(0, Pieces(all_[0]->window.data(), 0), whole(none),
                                     reinterpret_cast<std::uint64_t>(&arrived), Notices{}));
  });
  const Status waited = all_[0]->engine->wait_counter(arrived, 1);
  EXPECT_TRUE(waited) << describe(waited.error());
  late.join();
  ASSERT_TRUE(all_[1]->engine->finish());
  all_[1]->engine.reset();
  EXPECT_TRUE(is_lost(all_[0]->engine->wait_counter(arrived, 1)));
  ASSERT_TRUE(all_[0]->engine->finish());
}

TEST_P(LapiLosses, WhatWaitsForATaskThatLeavesFails) {
  if (GetParam() == Way::copy || GetParam() == Way::pointer) GTEST_SKIP() << "copies do not wait";
  start();
  all_[1]->engine->set_interrupts(false);
  std::vector<std::byte> bytes(is_over_hosts() ? 64 << 20
                                               : window_bytes);  // more than a stream holds
  std::vector<std::byte> there(bytes.size());
  lapi_cntr_t origin{};
  lapi_cntr_t complete{};
  ASSERT_TRUE(all_[0]->engine->put(1, whole(there), whole(bytes), 0,
                                   {.origin = &origin, .complete = &complete}));
  all_[1]->engine.reset();
  EXPECT_TRUE(is_lost(all_[0]->engine->wait_counter(origin, 1)));
  EXPECT_TRUE(is_lost(all_[0]->engine->wait_counter(complete, 1)));
  // An error is returned once: the counter may be used again.
  ASSERT_TRUE(all_[0]->engine->put(2, Pieces(all_[2]->window.data(), 1), Pieces(bytes.data(), 1), 0,
                                   {.complete = &complete}));
  EXPECT_TRUE(all_[0]->engine->wait_counter(complete, 1));
  for (int task : {0, 2}) ASSERT_TRUE(all_[task]->engine->finish());
}

TEST_P(LapiLosses, AMalformedMessageIsALoss) {
  for (const Message& wrong :
       {Message{.kind = static_cast<Kind>(77)}, Message{.kind = Kind::put, .header_bytes = 7},
        Message{.kind = Kind::active, .header_bytes = 1U << 30},
        Message{.kind = Kind::barrier, .code = most_barrier_rounds},
        Message{.kind = Kind::rmw, .code = rmw_code(0, 96)},
        Message{.kind = Kind::get_reply, .data_bytes = 9, .ticket = 1}}) {
    start(1);
    auto ways = ways_of(1);
    ASSERT_TRUE(ways);
    RawTask raw(*std::move(ways));
    lapi_cntr_t complete{};
    std::vector<std::byte> bytes(8);
    const Call call{.handler = 1, .header = {}};
    ASSERT_TRUE(all_[0]->engine->send_active(1, call, whole(bytes), 0, {.complete = &complete}));
    ASSERT_TRUE(raw.send(0, wrong));
    EXPECT_TRUE(is_lost(all_[0]->engine->wait_counter(complete, 1)));
    for (int task : {0, 2}) {
      ASSERT_TRUE(all_[task]->engine->finish());
      all_[task]->engine.reset();
    }
  }
}

// Not all of the message comes, and only the engine can know: the task has left in order.
TEST_P(LapiLosses, ATaskThatLeavesWithinAMessageIsLost) {
  constexpr std::size_t len = 1000;
  const std::vector<std::byte> half(len / 2);
  for (const std::size_t sent : {std::size_t{0}, half.size()}) {
    start(1);
    auto ways = ways_of(1);
    ASSERT_TRUE(ways);
    auto raw = std::make_unique<RawTask>(*std::move(ways));
    ASSERT_TRUE(raw->started());
    const auto window = reinterpret_cast<std::uint64_t>(all_[0]->window.data());
    ASSERT_TRUE(raw->send(0, {.kind = Kind::put, .data_bytes = len, .address = window}));
    ASSERT_TRUE(raw->send(0, std::span(half).first(sent)));
    raw.reset();
    lapi_cntr_t arrived{};
    EXPECT_TRUE(is_lost(all_[0]->engine->wait_counter(arrived, 1)));  // though task 2 lives
    for (int task : {0, 2}) all_[task]->engine.reset();
  }
}

// UCX drops what it still has when a task ends. That a task has left does not make it complete.
TEST_P(LapiLosses, ATaskIsLostIfTheLastThatItHasSentByUcxDoesNotArrive) {
  if (GetParam() != Way::ucx) GTEST_SKIP() << "otherwise the kernel delivers it";
  ::setenv("SHIMA_NODE_TIMEOUT", "1", 1);
  start(1);
  auto ways = ways_of(1);
  ASSERT_TRUE(ways);
  auto raw = std::make_unique<RawTask>(*std::move(ways));
  ASSERT_TRUE(raw->started());
  ASSERT_TRUE(raw->send(0, {.kind = Kind::fence, .ticket = 7}));
  while (!raw->has_got(Kind::done, 7)) std::this_thread::yield();
  errors = 0;
  all_[0]->engine->set_interrupts(false);  // receives nothing from now on
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  constexpr std::size_t much_bytes = std::size_t{64} << 20;
  const std::vector<std::byte> much(much_bytes);
  EXPECT_TRUE(raw->send(0, {.kind = Kind::put, .data_bytes = much_bytes, .address = 8}));
  EXPECT_FALSE(raw->send(0, much, std::chrono::milliseconds(300))) << "all has been sent";
  raw.reset();
  const auto until = Clock::now() + std::chrono::seconds(5);
  while (errors == 0 && Clock::now() < until) all_[0]->engine->probe();
  EXPECT_EQ(errors, 1);
  ::unsetenv("SHIMA_NODE_TIMEOUT");
  for (int task : {0, 2}) all_[task]->engine.reset();
}

// The end of the stream may not arrive, or a reset may come instead.
TEST_P(LapiLosses, ALeavingTaskSaysThatAllHasBeenSent) {
  if (GetParam() != Way::tcp) GTEST_SKIP() << "no connections";
  start(1);
  auto ways = ways_of(1);
  ASSERT_TRUE(ways);
  RawTask raw(*std::move(ways));
  ASSERT_TRUE(raw.send(0, {.kind = Kind::fence, .ticket = 7}));
  while (!raw.has_got(Kind::done, 7)) std::this_thread::yield();
  ASSERT_TRUE(all_[0]->engine->finish());
  all_[0]->engine.reset();
  const auto until = Clock::now() + std::chrono::seconds(5);
  while (!raw.has_got(Kind::last, 0) && Clock::now() < until) std::this_thread::yield();
  EXPECT_TRUE(raw.has_got(Kind::last, 0));
  ASSERT_TRUE(raw.send(2, {.kind = Kind::last}));
  ASSERT_TRUE(all_[2]->engine->finish());
  all_[2]->engine.reset();
}

// The socket is full when the other task leaves, and what has been gathered for it stays.
TEST_P(LapiLosses, ATaskLeavesAfterAnotherThatHasNotReceivedEverything) {
  start();
  std::vector<std::byte> bytes(8);
  lapi_cntr_t complete{};
  const auto put = [&](lapi_cntr_t* counter) {
    return all_[1]->engine->put(0, Pieces(all_[0]->window.data(), bytes.size()), whole(bytes), 0,
                                {.complete = counter});
  };
  ASSERT_TRUE(put(&complete));
  ASSERT_TRUE(all_[1]->engine->wait_counter(complete, 1));
  all_[0]->engine->set_interrupts(false);
  constexpr int many = 200000;
  std::thread sender([&] {
    for (int i = 0; i < many; ++i)
      if (!put(nullptr)) return;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  if (GetParam() != Way::pointer) all_[0]->engine.reset();
  sender.join();
  for (auto& task : all_) {
    if (!task->engine) continue;
    EXPECT_TRUE(task->engine->finish());
    task->engine.reset();
  }
}

// Its process may go on: other handlers of its exit take long. The meeting place tells it no more.
TEST_P(LapiLosses, ATaskThatHasLeftHearsOfNoLoss) {
  if (GetParam() != Way::tcp) GTEST_SKIP() << "only connections end without a word";
  start();
  std::vector<std::thread> threads;
  for (auto& task : all_) threads.emplace_back([&] { EXPECT_TRUE(task->engine->global_fence()); });
  for (std::thread& thread : threads) thread.join();
  errors = 0;
  for (auto& task : all_) task->engine->leave_now();
  std::this_thread::sleep_for(std::chrono::milliseconds(800));  // an end may be a loss after 500 ms
  EXPECT_EQ(errors, 0);
  for (auto& task : all_) task->engine.reset();
}

INSTANTIATE_TEST_SUITE_P(Ways, LapiLosses, all_ways, name_of_way);

}  // namespace
}  // namespace shima::lapi
