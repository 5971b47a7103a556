// Runs one piece of work at a time in a thread of its own, while the caller continues.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "base/process/exact_sleeps.h"
#include "base/process/quiet_thread.h"
#include "base/result.h"

namespace shima {

class Aside {
 public:
  using Work = std::function<Status()>;

  // The thread calls `settle_in` first, and `tell_end` at the end of each piece of work. Each piece
  // is passed to `carry_out`, also by a caller that runs it.
  explicit Aside(
      std::function<void()> settle_in, std::function<void()> tell_end = [] {},
      std::function<Status(const Work&)> carry_out = [](const Work& work) { return work(); })
      : settle_in_(std::move(settle_in)),
        tell_end_(std::move(tell_end)),
        carry_out_(std::move(carry_out)) {}
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  ~Aside() {
    {
      const std::lock_guard hold(mutex_);
      ending_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

  // Starts a piece of work. If it is not `worth_a_thread`, or no thread can be created, the caller
  // runs it before this returns.
  void start(Work work, bool worth_a_thread) {
    started_ = true;
    if (!worth_a_thread || !has_thread()) {
      outcome_ = caught([&] { return carry_out_(work); });
      return;
    }
    const std::lock_guard hold(mutex_);
    work_ = std::move(work);
    changed_.notify_all();
  }

  // Whether no work is in progress: then wait() does not block.
  [[nodiscard]] bool ended() {
    const std::lock_guard hold(mutex_);
    return !work_;
  }
  // Sleeps this long, or until work ends; not at all if the end of work was not yet waited for.
  void sleep(std::chrono::nanoseconds longest) {
    const ExactSleeps exact;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, longest, [&] { return started_ && !work_; });
  }

  // Waits for its end; returns its result once.
  [[nodiscard]] Status wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !work_; });
    started_ = false;
    return std::exchange(outcome_, Status{});
  }

 private:
  bool has_thread() {
    if (thread_.joinable()) return true;
    if (auto started = start_quiet_thread([this] { run(); })) thread_ = *std::move(started);
    return thread_.joinable();
  }

  void run() {
    settle_in_();
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return ending_ || work_; });
      if (!work_) return;
      lock.unlock();
      Status outcome = caught([&] { return carry_out_(work_); });
      lock.lock();
      outcome_ = std::move(outcome);
      work_ = nullptr;
      changed_.notify_all();
      tell_end_();
    }
  }

  std::function<void()> settle_in_;
  std::function<void()> tell_end_;
  std::function<Status(const Work&)> carry_out_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Work work_;  // under way
  Status outcome_;
  bool started_ = false;  // and its end was not waited for; the thread does not use it
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace shima
