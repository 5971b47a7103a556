// The engine of LAPI: random programs of several tasks, which are threads, against a sequential
// model; with pointers, with copies between processes, with messages only, and over TCP and UCX.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "lapi_tasks.h"

namespace shima::lapi {
namespace {

std::byte* part_of(std::vector<std::byte>& window, int owner) {
  return window.data() + static_cast<std::size_t>(owner) * window_bytes;
}

struct Header {
  int task;
  int owner;
  std::uint64_t offset;
};

void on_complete(lapi_handle_t*, void* info) { ++static_cast<Task*>(info)->completed; }

void* on_header(lapi_handle_t*, void* uhdr, uint* uhdr_len, ulong* msg_len, compl_hndlr_t** handler,
                void** info) {
  Header header;
  EXPECT_EQ(*uhdr_len, sizeof header);
  std::memcpy(&header, uhdr, sizeof header);
  Task& task = *world[header.task];
  const auto* about = reinterpret_cast<lapi_return_info_t*>(msg_len);
  EXPECT_EQ(about->src, header.owner);
  ++task.called;
  if (header.offset % 2 == 0) *handler = on_complete;
  *info = &task;
  return part_of(task.window, header.owner) + header.offset;
}

class Program {
 public:
  Program(int self, unsigned seed) : self_(self), random_(seed) {}

  void run(int operations) {
    for (int i = 0; i < operations; ++i) step();
    // Sources are reused only after a fence.
    ok(engine().global_fence());
  }
  std::uint64_t added64 = 0;
  std::uint32_t added32 = 0;
  std::uint64_t sent[tasks]{};
  std::uint64_t with_handler[tasks]{};
  int target_counts[tasks]{};

 private:
  Engine& engine() { return *world[self_]->engine; }
  static void ok(const Status& status) { ASSERT_TRUE(status) << describe(status.error()); }
  std::uint64_t below(std::uint64_t limit) { return limit == 0 ? 0 : random_() % limit; }
  // Mostly small; some beyond every threshold.
  std::uint64_t some_length() {
    constexpr std::uint64_t limits[] = {1, 9, 100, 2050, 2050, 17000, 70000};
    return below(limits[below(std::size(limits))]);
  }
  std::vector<std::byte>& fresh(std::uint64_t len) {
    auto& bytes = sources_.emplace_back(len);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    return bytes;
  }

  void step() {
    const int target = static_cast<int>(below(tasks));
    switch (below(8)) {
      case 0:
      case 1:
        return put(target);
      case 2:
        return put_vector(target);
      case 3:
        return call(target);
      case 4:
        return add(target);
      case 5:
        return get(target);
      case 6:
        return ok(engine().fence());
      default:
        if (below(4) == 0) engine().set_interrupts(below(2) == 0);
        engine().probe();
    }
  }
  // Where in its part of the target's window this task writes next: a later operation on the same
  // bytes needs a fence.
  std::uint64_t place(int target, std::uint64_t len) {
    std::uint64_t& at = written_[target];
    if (at + len > window_bytes) {
      ok(engine().fence());
      at = 0;
    }
    at += len;
    return at - len;
  }
  void model(int target, std::uint64_t at, const std::vector<std::byte>& bytes) {
    std::ranges::copy(bytes, part_of(world[target]->model, self_) + at);
  }
  std::uint64_t counter_of(int target) {
    if (below(2) == 0) return 0;
    ++target_counts[target];
    return reinterpret_cast<std::uint64_t>(&world[target]->arrived);
  }

  void put(int target) {
    const auto& bytes = fresh(some_length());
    const std::uint64_t at = place(target, bytes.size());
    model(target, at, bytes);
    lapi_cntr_t origin{};
    lapi_cntr_t complete{};
    ok(engine().put(target, Pieces(part_of(world[target]->window, self_) + at, bytes.size()),
                    Pieces(bytes.data(), bytes.size()), counter_of(target),
                    {.origin = &origin, .complete = &complete}));
    ok(engine().wait_counter(origin, 1));
    ok(engine().wait_counter(complete, 1));
  }
  void put_vector(int target) {
    const auto& bytes = fresh(some_length());
    const std::uint64_t at = place(target, bytes.size());
    model(target, at, bytes);
    std::vector<Piece> from;
    std::vector<Piece> to;
    for (std::uint64_t done = 0; done < bytes.size();) {
      const std::uint64_t len = std::min<std::uint64_t>(bytes.size() - done, 1 + below(3000));
      from.push_back({reinterpret_cast<std::uint64_t>(bytes.data()) + done, len});
      to.push_back(
          {reinterpret_cast<std::uint64_t>(part_of(world[target]->window, self_)) + at + done,
           len});
      done += len;
    }
    ok(engine().put(target, Pieces(to), Pieces(from), counter_of(target), {}));
  }
  void call(int target) {
    const auto& bytes = fresh(some_length());
    const std::uint64_t at = place(target, bytes.size());
    model(target, at, bytes);
    const Header header{target, self_, at};
    ++sent[target];
    if (at % 2 == 0) ++with_handler[target];
    const Call description{.handler = reinterpret_cast<std::uint64_t>(&on_header),
                           .header = std::as_bytes(std::span(&header, 1)),
                           .copy = below(2) == 0};
    lapi_cntr_t complete{};
    const bool waits = below(2) == 0;
    ok(engine().send_active(target, description, Pieces(bytes.data(), bytes.size()),
                            counter_of(target), {.complete = waits ? &complete : nullptr}));
    if (waits) ok(engine().wait_counter(complete, 1));
  }
  void add(int target) {
    const std::uint64_t value = below(1000);
    std::uint64_t previous = 0;
    lapi_cntr_t done{};
    const bool is_wide = below(2) == 0;
    (is_wide ? added64 : sum32_) += value;
    added32 = static_cast<std::uint32_t>(sum32_);
    ok(engine().rmw(target,
                    {.operation = FETCH_AND_ADD,
                     .size_bits = is_wide ? 64U : 32U,
                     .variable = is_wide ? reinterpret_cast<std::uint64_t>(&world[target]->word64)
                                         : reinterpret_cast<std::uint64_t>(&world[target]->word32),
                     .input = {value, 0},
                     .previous = &previous},
                    {.origin = &done}));
    ok(engine().wait_counter(done, 1));
  }
  // Reads back a part that it has written itself.
  void get(int target) {
    ok(engine().fence());
    const std::uint64_t len = std::min(some_length(), written_[target]);
    std::vector<std::byte> back(len);
    lapi_cntr_t done{};
    ok(engine().get(target, Pieces(part_of(world[target]->window, self_), len),
                    Pieces(back.data(), len), counter_of(target), {.origin = &done}));
    ok(engine().wait_counter(done, 1));
    EXPECT_TRUE(std::ranges::equal(back, std::span(part_of(world[target]->model, self_), len)));
  }

  int self_;
  std::mt19937 random_;
  std::deque<std::vector<std::byte>> sources_;
  std::uint64_t written_[tasks]{};
  std::uint64_t sum32_ = 0;
};

using LapiEngine = LapiTasks;

TEST_P(LapiEngine, RandomProgramsDoWhatTheModelDoes) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    start();
    std::vector<std::unique_ptr<Program>> programs;
    for (int i = 0; i < tasks; ++i)
      programs.push_back(std::make_unique<Program>(i, seed * 100 + static_cast<unsigned>(i)));
    std::vector<std::thread> threads;
    for (auto& program : programs) threads.emplace_back([&] { program->run(100); });
    for (std::thread& thread : threads) thread.join();
    finish();
    std::uint64_t sum64 = 0;
    std::uint64_t expected64 = 0;
    std::uint32_t sum32 = 0;
    std::uint32_t expected32 = 0;
    for (int i = 0; i < tasks; ++i) {
      Task& task = *all_[i];
      EXPECT_EQ(task.window, task.model) << "seed " << seed << ", task " << i;
      std::uint64_t called = 0;
      std::uint64_t completed = 0;
      int counts = 0;
      for (auto& program : programs) {
        called += program->sent[i];
        completed += program->with_handler[i];
        counts += program->target_counts[i];
      }
      EXPECT_EQ(task.called, called);
      EXPECT_EQ(task.completed, completed);
      EXPECT_EQ(value_of(task.arrived), counts);
      sum64 += task.word64;
      sum32 += task.word32;
      expected64 += programs[static_cast<std::size_t>(i)]->added64;
      expected32 += programs[static_cast<std::size_t>(i)]->added32;
    }
    EXPECT_EQ(sum64, expected64);
    EXPECT_EQ(sum32, expected32);
  }
}

// The target serves nothing until the origin waits in its fence.
TEST_P(LapiEngine, AFenceWaitsForAtomicOperations) {
  start();
  Engine& target = *all_[1]->engine;
  target.set_interrupts(false);
  std::atomic<bool> fenced{false};
  std::thread origin([&] {
    const std::uint64_t variable = reinterpret_cast<std::uint64_t>(&all_[1]->word64);
    EXPECT_TRUE(all_[0]->engine->rmw(1, {.size_bits = 64, .variable = variable, .input = {7, 0}},
                                     Notices{}));
    EXPECT_TRUE(all_[0]->engine->fence());
    EXPECT_EQ(std::atomic_ref(all_[1]->word64).load(), 7U);
    fenced = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  while (!fenced) target.probe();
  origin.join();
  target.set_interrupts(true);
  finish();
}

// While a program polls, it tells of the last Put with its next message. Here there is none.
TEST_P(LapiEngine, ACompletionIsToldAlsoIfTheTargetPollsNoMore) {
  start();
  for (int round = 0; round < 3; ++round) {
    std::thread target([&] {
      int seen = 0;
      while (seen <= round) {
        all_[1]->engine->probe(&all_[1]->arrived);
        seen = value_of(all_[1]->arrived);
      }
    });
    lapi_cntr_t complete{};
    std::vector<std::byte> bytes(8);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the target polls in a loop
    ASSERT_TRUE(all_[0]->engine->put(1, Pieces(all_[1]->window.data(), bytes.size()), whole(bytes),
                                     reinterpret_cast<std::uint64_t>(&all_[1]->arrived),
                                     {.complete = &complete}));
    EXPECT_TRUE(all_[0]->engine->wait_counter(complete, 1));
    target.join();
  }
  finish();
}

// Times that the calling thread gave the core away for more than a turn.
long sleeps_of_thread() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

// A counter that grows is progress, also if the program looks at another one in between. Without
// progress each look would sleep after a while.
TEST_P(LapiEngine, ALoopOverTwoCountersThatGrowDoesNotSleep) {
  start();
  lapi_cntr_t first{};
  lapi_cntr_t second{};
  constexpr int looks = 20000;
  const long sleeps_before = sleeps_of_thread();
  for (int i = 0; i < looks; ++i) {
    grow(first, 0);  // as a task of the same address space does
    all_[1]->engine->probe(&first);
    all_[1]->engine->probe(&second);
  }
  EXPECT_LT(sleeps_of_thread() - sleeps_before, looks / 10);
  finish();
}

TEST_P(LapiEngine, DataThatCannotBeFetchedIsAnErrorAtTheOrigin) {
  if (GetParam() != Way::copy) GTEST_SKIP() << "only then the target fetches data";
  start();
  const Header header{1, 0, 0};
  const Call call{.handler = reinterpret_cast<std::uint64_t>(&on_header),
                  .header = std::as_bytes(std::span(&header, 1))};
  lapi_cntr_t origin{};
  lapi_cntr_t complete{};
  constexpr std::uint64_t unmapped = 16;
  ASSERT_TRUE(all_[0]->engine->send_active(1, call, Pieces(unmapped, 32 << 10),
                                           reinterpret_cast<std::uint64_t>(&all_[1]->arrived),
                                           {.origin = &origin, .complete = &complete}));
  EXPECT_TRUE(is_lost(all_[0]->engine->wait_counter(complete, 1)));
  EXPECT_TRUE(is_lost(all_[0]->engine->wait_counter(origin, 1)));
  EXPECT_EQ(value_of(all_[1]->arrived), 0);
  EXPECT_EQ(all_[1]->completed, 0U);
  finish();
}

TEST_P(LapiEngine, AnOperationOnMemoryThatIsNotMappedIsAnErrorAtTheOrigin) {
  if (GetParam() == Way::copy || GetParam() == Way::pointer) GTEST_SKIP() << "no messages";
  start();
  constexpr std::uint64_t unmapped = 16;
  Engine& engine = *all_[0]->engine;
  const auto own = reinterpret_cast<std::uint64_t>(all_[1]->window.data());
  for (const std::uint64_t len : {std::uint64_t{8}, std::uint64_t{200} << 10}) {
    std::vector<std::byte> bytes(len, std::byte{7});
    lapi_cntr_t done{};
    const Notices when_complete{.complete = &done};
    const Notices when_here{.origin = &done};
    ASSERT_TRUE(engine.put(1, Pieces(unmapped, len), whole(bytes), 0, when_complete));
    EXPECT_TRUE(is_lost(engine.wait_counter(done, 1)));
    ASSERT_TRUE(engine.put(1, Pieces(own, len), whole(bytes), unmapped, when_complete));
    EXPECT_TRUE(is_lost(engine.wait_counter(done, 1)));
    ASSERT_TRUE(engine.put(1, Pieces(std::vector<Piece>{{own, len - 1}, {unmapped, 1}}),
                           whole(bytes), 0, when_complete));
    EXPECT_TRUE(is_lost(engine.wait_counter(done, 1)));
    ASSERT_TRUE(engine.get(1, Pieces(unmapped, len), whole(bytes), 0, when_here));
    EXPECT_TRUE(is_lost(engine.wait_counter(done, 1)));
    const Header header{1, 0, 0};
    const Call call{.handler = reinterpret_cast<std::uint64_t>(&on_header),
                    .header = std::as_bytes(std::span(&header, 1))};
    ASSERT_TRUE(engine.send_active(1, call, whole(bytes), unmapped, when_complete));
    EXPECT_TRUE(is_lost(engine.wait_counter(done, 1)));
    ASSERT_TRUE(engine.rmw(1, {.variable = unmapped}, when_here));
    EXPECT_TRUE(is_lost(engine.wait_counter(done, 1)));
    EXPECT_EQ(all_[1]->called, 0U);
    EXPECT_TRUE(engine.fence());
    // The streams go on.
    auto* const last = reinterpret_cast<std::uint64_t*>(all_[1]->window.data());
    ASSERT_TRUE(engine.put(1, Pieces(last, 8), Pieces(&len, 8), 0, when_complete));
    EXPECT_TRUE(engine.wait_counter(done, 1));
  }
  finish();
  // Nothing else has been stored.
  std::vector<std::byte> expected(all_[1]->window.size());
  constexpr std::uint64_t last_len = 200 << 10;
  std::memcpy(expected.data(), &last_len, sizeof last_len);
  EXPECT_EQ(all_[1]->window, expected);
}

// Memory that appears after others have been looked at is found.
TEST(LapiOwnMemory, IsWhatTheKernelSays) {
  OwnMemory memory;
  constexpr std::size_t page = 4096;
  auto* const made = static_cast<std::byte*>(
      ::mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(::mprotect(made + page, page, PROT_READ), 0);
  ASSERT_EQ(::mprotect(made + 3 * page, page, PROT_NONE), 0);
  const auto at = reinterpret_cast<std::uint64_t>(made);
  EXPECT_TRUE(memory.allows(at, page, Use::write));
  EXPECT_FALSE(memory.allows(at, page + 1, Use::write));
  EXPECT_TRUE(memory.allows(at, 3 * page, Use::read));
  EXPECT_FALSE(memory.allows(at, 3 * page + 1, Use::read));
  EXPECT_FALSE(memory.allows(at, 1, Use::execute));
  EXPECT_FALSE(memory.allows(at, UINT64_MAX, Use::read));
  EXPECT_FALSE(memory.allows(16, 1, Use::read));
  EXPECT_TRUE(memory.allows(16, 0, Use::write));
  ASSERT_EQ(::mprotect(made + page, 3 * page, PROT_READ | PROT_WRITE), 0);
  EXPECT_TRUE(memory.allows(at, 4 * page, Use::write));
  EXPECT_TRUE(memory.allows(reinterpret_cast<std::uint64_t>(&on_complete), 1, Use::execute));
  ::munmap(made, 4 * page);
}

INSTANTIATE_TEST_SUITE_P(Ways, LapiEngine, all_ways, name_of_way);

}  // namespace
}  // namespace shima::lapi
