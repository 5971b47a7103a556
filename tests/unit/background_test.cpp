#include "file/background.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

namespace shima {
namespace {

using std::chrono::microseconds;

struct Started {
  std::shared_ptr<Pending> pending = std::make_shared<Pending>();
  std::shared_ptr<std::thread::id> runner = std::make_shared<std::thread::id>();
};

// A task that notes which thread runs it.
Started start(Worker& worker, Begin begin, std::uint64_t outcome = 0) {
  Started started;
  worker.add(Task(
      [runner = started.runner, outcome]() -> Outcome64 {
        *runner = std::this_thread::get_id();
        return outcome;
      },
      started.pending, begin));
  return started;
}

// As a program waits.
Outcome64 finish(Pending& pending) {
  pending.run_late();
  return pending.wait();
}

void await_end(const Pending& pending) {
  while (!pending.over()) std::this_thread::sleep_for(microseconds(100));
}

TEST(Worker, RunsALateTaskThatNobodyWaitsFor) {
  Worker worker;
  for (int i = 0; i < 20; ++i) {
    const Started waited = start(worker, Begin::late);
    EXPECT_EQ(*finish(*waited.pending), 0U);
    const Started left = start(worker, Begin::late, 7);
    await_end(*left.pending);
    EXPECT_NE(*left.runner, std::this_thread::get_id());
    EXPECT_EQ(*left.pending->wait(), 7U);
  }
}

// How soon a thread waits depends on the machine, so a wait may come too late for it any time.
TEST(Worker, WhoWaitsSoonRunsALateTask) {
  Worker worker;
  bool ran_here = false;
  for (int i = 0; i < 100'000 && !ran_here; ++i) {
    const Started started = start(worker, Begin::late, 5);
    EXPECT_EQ(*finish(*started.pending), 5U);
    ran_here = *started.runner == std::this_thread::get_id();
  }
  EXPECT_TRUE(ran_here);
}

TEST(Worker, RunsOthersInItsThread) {
  Worker worker;
  for (int i = 0; i < 1000; ++i) {
    const Started started = start(worker, Begin::at_once);
    EXPECT_TRUE(finish(*started.pending));
    EXPECT_NE(*started.runner, std::this_thread::get_id());
  }
}

TEST(Worker, ReportsErrors) {
  Worker worker;
  for (int i = 0; i < 100; ++i) {
    const auto pending = std::make_shared<Pending>();
    worker.add(
        Task([]() -> Outcome64 { return fail(Code::no_space, "full"); }, pending, Begin::late));
    const Outcome64 outcome = finish(*pending);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, Code::no_space);
  }
}

TEST(Worker, FinishesItsTasksBeforeItEnds) {
  std::atomic<int> done = 0;
  for (int round = 0; round < 50; ++round) {
    Worker worker;
    EXPECT_TRUE(finish(*start(worker, Begin::late).pending));
    for (int i = 0; i < 3; ++i)
      worker.add(Task([&done]() -> Outcome64 { return static_cast<std::uint64_t>(++done); },
                      std::make_shared<Pending>(), Begin::late));
  }
  EXPECT_EQ(done, 150);
}

// In any thread, tasks run in the order in which they were added, each once, one at a time.
TEST(Worker, KeepsTheOrder) {
  std::mt19937 random(1);
  for (int round = 0; round < 30; ++round) {
    std::vector<int> order;  // by the tasks, which the worker keeps apart
    std::atomic<int> running = 0;
    bool alone = true;
    int added = 0;
    Worker worker;
    std::vector<std::shared_ptr<Pending>> all;
    const auto pick = [&](int most) {
      return static_cast<int>(random() % static_cast<unsigned>(most));
    };
    for (int step = 0; step < 300; ++step) {
      const int number = added++;
      auto work = [&, number]() -> Outcome64 {
        alone = alone && running++ == 0;
        order.push_back(number);
        if (number % 7 == 0) std::this_thread::yield();
        --running;
        return static_cast<std::uint64_t>(number);
      };
      all.push_back(std::make_shared<Pending>());
      worker.add(Task(work, all.back(), pick(4) == 0 ? Begin::at_once : Begin::late));
      const int then = pick(6);
      if (then < 2) {
        EXPECT_EQ(*finish(*all.back()), static_cast<std::uint64_t>(number));
      }
      if (then == 2) {
        const auto which = static_cast<std::size_t>(pick(added));
        EXPECT_EQ(*finish(*all[which]), which);
      }
      if (then == 3 && pick(10) == 0) worker.drain();
      if (then == 4) std::this_thread::sleep_for(microseconds(pick(120)));
    }
    worker.drain();
    EXPECT_TRUE(worker.is_idle());
    EXPECT_TRUE(alone);
    ASSERT_EQ(order.size(), static_cast<std::size_t>(added));
    EXPECT_TRUE(std::ranges::is_sorted(order));
  }
}

// A program that waits soon, and then: waits for the second of two, tests, lets the worker drain.
TEST(Worker, RunsAllThatIsBeforeTheTaskWaitedFor) {
  Worker worker;
  for (int i = 0; i < 3000; ++i) {
    const Started first = start(worker, Begin::late, 1);
    const Started second = start(worker, Begin::late, 2);
    EXPECT_EQ(*finish(*second.pending), 2U);
    EXPECT_TRUE(first.pending->over());
    const Started tested = start(worker, Begin::late, 3);
    if (i % 30 == 0) {
      while (!tested.pending->over()) tested.pending->hurry();
    } else {
      worker.drain();
    }
    EXPECT_EQ(*tested.pending->wait(), 3U);
  }
}

// The worker's thread sleeps until it is woken if another thread runs a task for long. A task that
// begins late and is behind that one, is begun nevertheless.
TEST(Worker, BeginsALateTaskBehindALongOne) {
  Worker worker;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(finish(*start(worker, Begin::late).pending));
    std::atomic<bool> running = false;
    std::thread waiter([&] {
      const auto pending = std::make_shared<Pending>();
      worker.add(Task(
          [&running]() -> Outcome64 {
            running = true;
            std::this_thread::sleep_for(microseconds(60'000));
            return 0;
          },
          pending, Begin::late));
      EXPECT_TRUE(finish(*pending));
    });
    while (!running) std::this_thread::yield();
    const Started behind = start(worker, Begin::late);
    std::this_thread::sleep_for(microseconds(40'000));
    const Started last = start(worker, Begin::late);
    // The thread goes to sleep again, and this wait is still soon.
    for (const auto from = Clock::now(); Clock::now() - from < microseconds(25);)
      std::this_thread::yield();
    EXPECT_TRUE(finish(*last.pending));
    EXPECT_TRUE(behind.pending->over());
    waiter.join();
  }
}

// Several threads wait for tasks of one worker.
TEST(Worker, ServesSeveralWaiters) {
  Worker worker;
  std::atomic<std::uint64_t> sum = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < 500; ++i)
        sum += *finish(*start(worker, Begin::late, i).pending);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, 4U * 500U * 499U / 2U);
}

}  // namespace
}  // namespace shima
