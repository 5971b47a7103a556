#include "lapi/completions.h"

#include "base/process/quiet_thread.h"
#include "lapi/own_thread.h"

namespace shima::lapi {

void Completions::add(std::function<void()> work) {
  std::unique_lock lock(mutex_);
  const bool all_busy = busy_ == static_cast<int>(threads_.size());
  if (all_busy && static_cast<int>(threads_.size()) < most_threads_)
    if (auto started = start_quiet_thread([this] { run(); }))
      threads_.push_back(*std::move(started));
  if (threads_.empty()) {
    lock.unlock();
    return work();
  }
  waiting_.push_back(std::move(work));
  changed_.notify_all();
}

void Completions::run() {
  engine_of_thread = engine_;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    ++busy_;
    lock.unlock();
    work();
    lock.lock();
    --busy_;
    changed_.notify_all();
  }
}

void Completions::finish() {
  if (engine_of_thread == engine_) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return threads_.empty() || (waiting_.empty() && busy_ == 0); });
}

bool Completions::is_busy() {
  if (engine_of_thread == engine_) return false;
  const std::lock_guard hold(mutex_);
  return busy_ > 0 || !waiting_.empty();
}

void Completions::end() {
  {
    const std::lock_guard hold(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

}  // namespace shima::lapi
