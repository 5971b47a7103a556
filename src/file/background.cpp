#include "file/background.h"

#include <algorithm>
#include <chrono>

#include "base/fault_point.h"
#include "base/process/quiet_thread.h"
#include "observe/board.h"

namespace shima {
namespace {

thread_local bool is_worker = false;

// Waits for a condition. With a progress hook it waits in slices and calls the hook between them.
template <class Ready>
void wait_and_progress(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                       const Progress& progress, std::chrono::microseconds longest, Ready ready) {
  if (!progress) return changed.wait(lock, ready);
  constexpr std::chrono::microseconds shortest(50);
  auto slice = shortest;
  while (!changed.wait_for(lock, slice, ready)) {
    lock.unlock();
    progress();
    lock.lock();
    slice = std::min(slice * 2, longest);
  }
}

}  // namespace

bool on_worker_thread() { return is_worker; }

void Pending::finish(Outcome64 outcome) {
  const std::lock_guard hold(mutex_);
  outcome_ = std::move(outcome);
  is_over_ = true;
  over_.notify_all();
}

bool Pending::over() const {
  const std::lock_guard hold(mutex_);
  return is_over_;
}

Outcome64 Pending::wait(const Progress& progress, std::chrono::microseconds longest_slice) {
  std::unique_lock lock(mutex_);
  if (is_over_) return outcome_;
  const Asleep asleep;
  wait_and_progress(lock, over_, progress, longest_slice, [&] { return is_over_; });
  return outcome_;
}

Worker::~Worker() {
  {
    const std::lock_guard hold(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

Task::Task(Work work, std::function<void(Outcome64)> done) {
  item_.push_back({std::move(work), std::move(done)});
}

void Task::run() noexcept {
  Item& item = item_.front();
  Outcome64 outcome = caught([&] { return item.work(); });
  item.work = nullptr;  // release what the work holds before a waiter may continue
  if (item.done) item.done(std::move(outcome));
}

void Worker::add(Task task) noexcept {
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) {
    auto started = start_quiet_thread([this] { run(); });
    if (!started) {
      lock.unlock();
      return task.run();
    }
    thread_ = *std::move(started);
  }
  queue_.splice(queue_.end(), task.item_);
  note_queued(1);
  changed_.notify_all();
}

void Worker::make_reserve() {
  Task made{Work(), nullptr};
  const std::lock_guard hold(mutex_);
  if (!reserve_) std::swap(reserve_, made);
}

void Worker::add_reserved(Work work, const Progress& progress) noexcept {
  Task task;
  {
    const std::lock_guard hold(mutex_);
    std::swap(task, reserve_);
  }
  if (task) {
    task.set_work(std::move(work));
    add(std::move(task));
  } else {
    drain(progress);
    std::ignore = caught([&] { return work(); });
  }
  // If there is no memory for another reserve now, the next such work is done at once.
  std::ignore = caught([this]() -> Status {
    make_reserve();
    return {};
  });
}

void Worker::drain(const Progress& progress) {
  std::unique_lock lock(mutex_);
  if (queue_.empty() && !busy_) return;
  const Asleep asleep;
  wait_and_progress(lock, changed_, progress, std::chrono::milliseconds(2),
                    [&] { return queue_.empty() && !busy_; });
}

bool Worker::is_idle() {
  const std::lock_guard hold(mutex_);
  return queue_.empty() && !busy_;
}

void Worker::run() {
  is_worker = true;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Task task;
    task.item_.splice(task.item_.end(), queue_, queue_.begin());
    busy_ = true;
    lock.unlock();
    fault_point(FaultPhase::work);
    task.run();
    lock.lock();
    busy_ = false;
    note_queued(-1);
    changed_.notify_all();
  }
}

}  // namespace shima
