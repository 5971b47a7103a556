#include "file/background.h"

#include <algorithm>
#include <chrono>

#include "base/fault_point.h"
#include "base/process/quiet_thread.h"
#include "observe/board.h"

namespace shima {
namespace {

thread_local bool is_worker = false;

// Who waits within this time waits soon.
constexpr std::chrono::microseconds soon(50);
// A thread that is not woken for each task looks again so often, and after so many vain looks
// sleeps until it is woken.
constexpr std::chrono::milliseconds look_interval(1);
constexpr int most_looks = 16;
// A program that waits soon for one call and computes during the next does not count as one that
// waits soon.
constexpr int enough_soon_waits = 2;

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
  worker_ = nullptr;
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

Worker* Pending::worker() const {
  const std::lock_guard hold(mutex_);
  return worker_;
}

void Pending::run_late() noexcept {
  if (Worker* const has_it = worker()) has_it->run_late(*this);
}

void Pending::hurry() noexcept {
  if (Worker* const has_it = worker()) has_it->hurry();
}

Task::Task(Work work, std::function<void(Outcome64)> done) {
  item_.push_back({std::move(work), std::move(done)});
}

Task::Task(Work work, std::shared_ptr<Pending> pending, Begin begin)
    : Task(std::move(work), [pending](Outcome64 outcome) { pending->finish(std::move(outcome)); }) {
  item_.front().pending = std::move(pending);
  item_.front().begin = begin;
}

void Task::run() noexcept {
  Item& item = item_.front();
  Outcome64 outcome = caught([&] { return item.work(); });
  item.work = nullptr;  // release what the work holds before a waiter may continue
  if (item.done) item.done(std::move(outcome));
}

Worker::~Worker() {
  {
    const std::lock_guard hold(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Worker::add(Task task) noexcept {
  Lock lock(mutex_);
  if (!thread_.joinable()) {
    auto started = start_quiet_thread([this] { run(); });
    if (!started) {
      lock.unlock();
      return task.run();
    }
    thread_ = *std::move(started);
  }
  Task::Item& item = task.item_.front();
  if (item.begin == Begin::late) {
    const auto now = Clock::now();
    if (looks_left_ > 0) {
      item.due = now + soon;
    } else {
      item.begin = Begin::at_once;
    }
    const std::lock_guard hold(item.pending->mutex_);
    item.pending->worker_ = this;
    item.pending->queued_ = now;
  }
  const bool may_sleep_on = looks_again_ && item.begin == Begin::late;
  queue_.splice(queue_.end(), task.item_);
  note_queued(1);
  if (!may_sleep_on) changed_.notify_all();
}

void Worker::run_late(const Pending& pending) noexcept {
  Lock lock(mutex_);
  const bool is_soon = Clock::now() - pending.queued_ < soon;
  soon_waits_ = is_soon ? soon_waits_ + 1 : 0;
  looks_left_ = soon_waits_ >= enough_soon_waits ? most_looks : 0;
  if (!next_may_run_here()) return;
  const Asleep asleep;
  const AsAnotherThread shown;
  while (next_may_run_here() && !pending.over()) run_next(lock);
}

void Worker::hurry() noexcept {
  const Lock lock(mutex_);
  if (looks_left_ == 0) return;
  soon_waits_ = looks_left_ = 0;
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
  Lock lock(mutex_);
  if (queue_.empty() && !busy_) return;
  const Asleep asleep;
  while (next_may_run_here()) {
    const AsAnotherThread shown;
    run_next(lock);
    lock.unlock();
    if (progress) progress();
    lock.lock();
  }
  wait_and_progress(lock, idle_, progress, std::chrono::milliseconds(2),
                    [&] { return queue_.empty() && !busy_; });
}

bool Worker::is_idle() {
  const std::lock_guard hold(mutex_);
  return queue_.empty() && !busy_;
}

void Worker::run() {
  is_worker = true;
  Lock lock(mutex_);
  while (true) {
    sleep(lock);
    if (queue_.empty()) return;
    if (queue_.front().begin == Begin::late) soon_waits_ = looks_left_ = 0;
    run_next(lock);
  }
}

// Until a task is due, or the worker ends. While somebody else runs a task, nothing is due.
void Worker::sleep(Lock& lock) {
  while (true) {
    const bool nothing_due = busy_ || queue_.empty();
    if (ending_ && !busy_) return;
    if (nothing_due && looks_left_ == 0) {
      changed_.wait(lock);
      continue;
    }
    const auto until = nothing_due ? Clock::now() + look_interval : queue_.front().due;
    if (!nothing_due && (looks_left_ == 0 || Clock::now() >= until)) return;
    looks_again_ = true;
    changed_.wait_until(lock, until);
    looks_again_ = false;
    if ((busy_ || queue_.empty()) && looks_left_ > 0) --looks_left_;
  }
}

// Nothing may be running.
void Worker::run_next(Lock& lock) {
  Task task;
  task.item_.splice(task.item_.end(), queue_, queue_.begin());
  busy_ = true;
  lock.unlock();
  fault_point(FaultPhase::work);
  task.run();
  lock.lock();
  busy_ = false;
  note_queued(-1);
  idle_.notify_all();
  const bool may_sleep_on = queue_.empty() || (looks_again_ && queue_.front().begin == Begin::late);
  if (!may_sleep_on || ending_) changed_.notify_all();
}

}  // namespace shima
