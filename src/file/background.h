// Background execution of operations while the program computes.
//
// A Worker is a thread with a queue; the thread starts with the first task. An open file has two:
// one for collective operations, whose order is the program's and the same on all members, and one
// for this member's own operations, so that neither waits for the other. A thread that waits for an
// operation may have other work to advance meanwhile (an MPI's messages): that is its progress
// hook.
//
// To hand a task to the worker and to be woken by it takes longer than a small operation. So a task
// may begin late: who waits for it within a moment runs it in its own thread; otherwise the worker
// begins it. That is done only while the program waits for its operations soon after it has started
// them, and the worker is not woken for each of them then.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/result.h"

namespace shima {

class Worker;

// Called at intervals by a waiting thread; empty if there is nothing to advance.
using Progress = std::function<void()>;

// The number of bytes that an operation moved, or its error.
using Outcome64 = Result<std::uint64_t>;
using Work = std::function<Outcome64()>;

// An operation in progress, and its outcome when it has completed. If a worker has its task, the
// worker must live until then.
class Pending {
 public:
  void finish(Outcome64 outcome);
  [[nodiscard]] bool over() const;
  // Sleeps until the operation has completed; calls the progress hook at least every
  // `longest_slice`.
  [[nodiscard]] Outcome64 wait(
      const Progress& progress = {},
      std::chrono::microseconds longest_slice = std::chrono::milliseconds(2));
  // For who begins to wait: runs the operation, and those before it, in this thread, if they may
  // begin late. Makes no progress meanwhile but what the operations make.
  void run_late() noexcept;
  // For who does not wait and wants to know when it is over: it begins.
  void hurry() noexcept;

 private:
  friend class Worker;
  [[nodiscard]] Worker* worker() const;

  mutable std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  Outcome64 outcome_ = 0;
  Worker* worker_ = nullptr;  // that has its task
  Clock::time_point queued_;
};

enum class Begin : std::uint8_t { at_once, late };

// Work and its completion callback, prepared for queueing: add() allocates nothing, so that a
// member that has begun to start a collective call can always take part in it.
class Task {
 public:
  Task() = default;
  // Calls `done` with the outcome of `work`, in the thread that has run it.
  Task(Work work, std::function<void(Outcome64)> done);
  // Finishes `pending`, and may `begin` late.
  Task(Work work, std::shared_ptr<Pending> pending, Begin begin);
  [[nodiscard]] explicit operator bool() const { return !item_.empty(); }
  void set_done(std::function<void(Outcome64)> done) { item_.front().done = std::move(done); }
  // Replaces work and callback of a task that was created as a reserve; both must fit into
  // std::function without allocation.
  void set_work(Work work) { item_.front().work = std::move(work); }
  // Runs it in the calling thread.
  void run() noexcept;

 private:
  friend class Worker;
  struct Item {
    Work work;
    std::function<void(Outcome64)> done;
    std::shared_ptr<Pending> pending = nullptr;
    Begin begin = Begin::at_once;
    Clock::time_point due{};  // when the worker begins it
  };
  std::list<Item> item_;  // one item, or none
};

class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  // Finishes the queued tasks.
  ~Worker();

  // Runs the task in the worker's thread, after all tasks added before. If no thread can be
  // created, the caller runs it at once.
  void add(Task task) noexcept;
  // The same; builds the task here.
  void add(Work work, std::function<void(Outcome64)> done) {
    add(Task(std::move(work), std::move(done)));
  }
  // The same with a task allocated by make_reserve(), so that it needs no memory. If that task is
  // still queued, the caller drains the queue and runs the work itself. `work` must be small enough
  // for std::function not to allocate.
  void add_reserved(Work work, const Progress& progress = {}) noexcept;
  // Throws if there is no memory.
  void make_reserve();
  // Runs the tasks that may begin late; sleeps until no task is queued or running.
  void drain(const Progress& progress = {});
  [[nodiscard]] bool is_idle();
  // Of Pending.
  void run_late(const Pending& pending) noexcept;
  void hurry() noexcept;

 private:
  using Lock = std::unique_lock<std::mutex>;

  void run();
  void sleep(Lock& lock);
  void run_next(Lock& lock);
  [[nodiscard]] bool next_may_run_here() const {
    return !busy_ && !queue_.empty() && queue_.front().begin == Begin::late;
  }

  std::mutex mutex_;
  std::condition_variable changed_;  // of the thread
  std::condition_variable idle_;
  std::list<Task::Item> queue_;
  Task reserve_;
  bool busy_ = false;  // a task is run, by the thread or by who waits for it
  bool ending_ = false;
  int soon_waits_ = 0;  // for one task that may begin late after the other
  // Not 0: the program waits soon. How often the thread looks for a task, in vain, before it sleeps
  // until it is woken.
  int looks_left_ = 0;
  bool looks_again_ = false;  // the thread sleeps, but not for long
  std::thread thread_;
};

// Whether this thread is a Worker's.
[[nodiscard]] bool on_worker_thread();

}  // namespace shima
