// A job of tasks as a shared memory needs it, through lapi.h like any client: numbers, exchange of
// values, barriers, notes of changed protection and of lost tasks.
#pragma once

#include <lapi.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "dsm/memory.h"

namespace shima::capi {

// The error of a LAPI call that has failed.
[[nodiscard]] std::unexpected<Error> lapi_failed(int code);
[[nodiscard]] inline Status lapi_status(int code) {
  if (code == LAPI_SUCCESS) return {};
  return lapi_failed(code);
}

class LapiJob {
 public:
  [[nodiscard]] static Result<std::unique_ptr<LapiJob>> join();
  LapiJob(const LapiJob&) = delete;
  LapiJob& operator=(const LapiJob&) = delete;
  // Leaves the job.
  ~LapiJob();

  [[nodiscard]] lapi_handle_t handle() const { return handle_; }
  [[nodiscard]] int task() const { return task_; }
  [[nodiscard]] int tasks() const { return tasks_; }
  // Collective: the values of all tasks, in order.
  template <class Value>
  [[nodiscard]] Result<std::vector<Value>> gather(const Value& own);
  // Collective: an error on all tasks if one has failed; names `what` it did.
  [[nodiscard]] Status agree(const Status& own, const char* what);
  // Collective.
  [[nodiscard]] Status meet() { return lapi_status(LAPI_Gfence(handle_)); }

  // Collective, after the loss of a task: waits until each other task has called it, or has left or
  // is lost.
  void await_closing();

  // Changes and losses are noted in this memory from now on; null: no longer.
  void inform(dsm::Memory* memory) { memory_.store(memory, std::memory_order_seq_cst); }
  // Tells tasks of a change of protection, and waits until they have noted it. Lost ones are left
  // out.
  [[nodiscard]] Status tell(std::span<const int> tasks, dsm::Granules range,
                            dsm::Protection protection);
  [[nodiscard]] bool is_lost(int task) const {
    return lost_[static_cast<std::size_t>(task)].load(std::memory_order_relaxed);
  }

 private:
  friend struct JobHandlers;
  LapiJob() = default;
  void note_loss(int task);
  // Sends an active message, and waits until the task has served it.
  [[nodiscard]] Status note(int task, int handler, std::span<std::byte> header);
  [[nodiscard]] Status gather_words(std::span<const std::uint64_t> own,
                                    std::span<std::uint64_t> all);

  lapi_handle_t handle_ = 0;
  int task_ = 0;
  int tasks_ = 1;
  std::vector<std::atomic<bool>> lost_;
  std::vector<std::atomic<bool>> closing_;
  std::atomic<dsm::Memory*> memory_{nullptr};
};

template <class Value>
Result<std::vector<Value>> LapiJob::gather(const Value& own) {
  static_assert(std::is_trivially_copyable_v<Value>);
  constexpr std::size_t words = (sizeof(Value) + 7) / 8;
  std::array<std::uint64_t, words> mine{};
  std::memcpy(mine.data(), &own, sizeof own);
  std::vector<std::uint64_t> all(words * static_cast<std::size_t>(tasks_));
  SHIMA_TRY(gather_words(mine, all));
  std::vector<Value> values(static_cast<std::size_t>(tasks_));
  for (std::size_t i = 0; i < values.size(); ++i)
    std::memcpy(static_cast<void*>(&values[i]), all.data() + i * words, sizeof(Value));
  return values;
}

}  // namespace shima::capi
