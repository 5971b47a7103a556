// Tasks of a LAPI job as threads of one test, by every way that connects tasks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "lapi/engine.h"
#include "lapi/way/meeting_place.h"

namespace shima::lapi {

inline constexpr int tasks = 3;
inline constexpr std::size_t window_bytes = 96 << 10;

// One task. Each other task owns a third of the window, so that the outcome is determined; words
// and sums are shared by atomic operations.
struct Task {
  std::unique_ptr<Engine> engine;
  std::vector<std::byte> window = std::vector<std::byte>(tasks * window_bytes);
  std::vector<std::byte> model = std::vector<std::byte>(tasks * window_bytes);  // what it shall be
  alignas(8) std::uint64_t word64 = 0;
  alignas(8) std::uint32_t word32 = 0;
  lapi_cntr_t arrived{};
  std::atomic<std::uint64_t> called{0};
  std::atomic<std::uint64_t> completed{0};
  std::atomic<std::uint64_t> landing_sum{0};
};
inline Task* world[tasks];

enum class Way {
  messages,
  copy,
  pointer,
  tcp,    // each task on a host of its own
  mixed,  // the last task on another host than the others
  ucx,    // each task on a host of its own, by UCX if this machine has it
};

class LapiTasks : public testing::TestWithParam<Way> {
 protected:
  static inline std::atomic<int> errors{0};
  static void count_error(lapi_handle_t*, int*, lapi_err_t*, int*, int*) { ++errors; }

  // All tasks, but for one that the test is itself.
  void start(int raw = -1) {
    region_.reset(
        static_cast<std::byte*>(std::aligned_alloc(4096, JobMemory::region_bytes(tasks))));
    std::memset(region_.get(), 0, JobMemory::region_bytes(tasks));
    for (int i = 0; i < tasks; ++i) {
      all_[i] = std::make_unique<Task>();
      world[i] = all_[i].get();
    }
    if (is_over_hosts()) {
      place_.reset();
      auto place = MeetingPlace::start(shared_with({}, {}));
      ASSERT_TRUE(place) << describe(place.error());
      place_ = *std::move(place);
    }
    for (int i = 0; i < tasks; ++i) {
      if (i == raw) continue;
      auto ways = ways_of(i);
      ASSERT_TRUE(ways) << describe(ways.error());
      auto engine = Engine::start(*std::move(ways), {.on_error = count_error});
      ASSERT_TRUE(engine) << describe(engine.error());
      all_[i]->engine = *std::move(engine);
    }
  }
  [[nodiscard]] static bool is_over_hosts() { return GetParam() >= Way::tcp; }
  [[nodiscard]] Result<std::unique_ptr<Ways>> ways_of(int task) {
    const Reach reach = std::min(static_cast<Reach>(GetParam()), Reach::pointer);
    const NodeOptions here{.most = is_over_hosts() ? Reach::none : reach, .same_process = true};
    if (!is_over_hosts())
      return Ways::on_node(JobMemory({region_.get(), JobMemory::region_bytes(tasks)}, tasks), task,
                           here);
    const int host = GetParam() == Way::mixed ? task / (tasks - 1) : task;
    return Ways::over_hosts(place_->address(),
                            {.task = task, .tasks = tasks, .host = {static_cast<char>('a' + host)}},
                            here, GetParam() == Way::ucx ? Carrier::ucx : Carrier::tcp);
  }
  void finish() {
    for (auto& task : all_) ASSERT_TRUE(task->engine->finish());
    for (auto& task : all_) task->engine.reset();
  }

  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<std::byte[], Free> region_;
  std::unique_ptr<MeetingPlace> place_;
  std::unique_ptr<Task> all_[tasks];
};

inline Pieces whole(std::vector<std::byte>& bytes) { return {bytes.data(), bytes.size()}; }

inline bool is_lost(const Status& status) {
  return !status && status.error().code == Code::peer_lost;
}

inline std::string name_of_way(const testing::TestParamInfo<Way>& way) {
  constexpr const char* names[] = {"messages", "copy", "pointer", "tcp", "mixed", "ucx"};
  return names[static_cast<int>(way.param)];
}
// Every way, for a suite of tests.
inline const auto all_ways =
    testing::Values(Way::pointer, Way::copy, Way::messages, Way::tcp, Way::mixed, Way::ucx);

}  // namespace shima::lapi
