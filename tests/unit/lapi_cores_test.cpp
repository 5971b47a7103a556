// A task that shares a core with another one leaves it, if the node has a core for each.
#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <memory>
#include <vector>

#include "base/process/cpu_mask.h"
#include "lapi/way/node_transport.h"

namespace shima::lapi {
namespace {

constexpr int tasks = 2;

CpuMask only(int cpu) {
  CpuMask mask;
  mask.words[static_cast<std::size_t>(cpu / 64)] = std::uint64_t{1} << (cpu % 64);
  return mask;
}

class LapiCores : public testing::Test {
 protected:
  void SetUp() override {
    for (int cpu = 0; cpu < CpuMask::most_cpus; ++cpu)
      if (all_.has(cpu)) cpus_.push_back(cpu);
    const JobMemory memory(region_bytes(), tasks);
    for (int task = 0; task < tasks; ++task) {
      auto joined = NodeTransport::join(memory, task, {.same_process = true});
      ASSERT_TRUE(joined);
      tasks_[static_cast<std::size_t>(task)] = *std::move(joined);
    }
  }
  void TearDown() override { all_.bind_thread(); }

  std::span<std::byte> region_bytes() {
    const std::size_t len_bytes = JobMemory::region_bytes(tasks);
    auto* const first = static_cast<std::byte*>(std::aligned_alloc(4096, len_bytes));
    std::fill_n(first, len_bytes, std::byte{0});
    region_.reset(first);
    return {first, len_bytes};
  }
  // How often a task is on another core afterwards. The kernel may move the thread, too.
  int moves_of(int task, const CpuMask& allowed) {
    int moved = 0;
    for (int i = 0; i < attempts; ++i) {
      only(cpus_[0]).bind_thread();
      for (const auto& each : tasks_) std::ignore = each->shares_core();
      EXPECT_TRUE(tasks_[0]->shares_core());
      allowed.bind_thread();
      tasks_[static_cast<std::size_t>(task)]->leave_shared_core();
      moved += ::sched_getcpu() == cpus_[0] ? 0 : 1;
      EXPECT_EQ(CpuMask::own().words, allowed.words);
    }
    return moved;
  }

  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  static constexpr int attempts = 50;
  const CpuMask all_ = CpuMask::own();
  std::vector<int> cpus_;
  std::unique_ptr<std::byte[], Free> region_;
  std::array<std::unique_ptr<NodeTransport>, tasks> tasks_;
};

TEST_F(LapiCores, OneOfTwoLeaves) {
  if (cpus_.size() < 2) GTEST_SKIP() << "one core";
  EXPECT_LT(moves_of(0, all_), attempts / 2);
  EXPECT_GT(moves_of(1, all_), attempts / 2);
}

TEST_F(LapiCores, NoneLeavesIfThereIsNoOtherCore) { EXPECT_EQ(moves_of(1, only(cpus_[0])), 0); }

}  // namespace
}  // namespace shima::lapi
