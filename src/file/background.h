// Work that goes on while the program computes.
//
// A Worker is a thread with a queue, started when it first gets something to do. An open file has
// two: one for what all members do together, whose order is the program's and the same everywhere,
// and one for what this member does alone, so that neither waits for the other. Who waits for one
// may have something else to keep moving meanwhile (an MPI's messages): that is its progress hook.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "base/result.h"

namespace shima {

// Called now and then by a thread that waits; empty where there is nothing to keep moving.
using Progress = std::function<void()>;

// How many bytes an operation moved, or why it failed.
using Outcome64 = Result<std::uint64_t>;
using Work = std::function<Outcome64()>;

// An operation under way, and its outcome once it is over.
class Pending {
 public:
  void finish(Outcome64 outcome);
  [[nodiscard]] bool over() const;
  // Sleeps until it is over; the progress hook is called at least every `longest_slice`.
  [[nodiscard]] Outcome64 wait(
      const Progress& progress = {},
      std::chrono::microseconds longest_slice = std::chrono::milliseconds(2));

 private:
  mutable std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  Outcome64 outcome_ = 0;
};

// Work with what is done at its end, made ready to be queued: queueing allocates nothing, so that a
// collective call that a member has begun to start can always be taken part in.
class Task {
 public:
  Task() = default;
  // Calls `done` with the outcome of `work`, in the thread that works.
  Task(Work work, std::function<void(Outcome64)> done);
  [[nodiscard]] explicit operator bool() const { return !item_.empty(); }
  void set_done(std::function<void(Outcome64)> done) { item_.front().done = std::move(done); }
  // Replaces the work and the end of a task that was made as a reserve; must fit where
  // std::function needs no memory.
  void set_work(Work work) { item_.front().work = std::move(work); }
  // Does it here and now.
  void run() noexcept;

 private:
  friend class Worker;
  struct Item {
    Work work;
    std::function<void(Outcome64)> done;
  };
  std::list<Item> item_;  // one, or none
};

class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  // Finishes what is queued.
  ~Worker();

  // Runs the task after everything added before, in the worker's thread; at once where the system
  // gives no thread.
  void add(Task task) noexcept;
  // The same, made ready here.
  void add(Work work, std::function<void(Outcome64)> done) {
    add(Task(std::move(work), std::move(done)));
  }
  // Sleeps until nothing is queued or under way.
  void drain(const Progress& progress = {});

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Task::Item> queue_;
  bool busy_ = false;
  bool ending_ = false;
  std::thread thread_;
};

// Whether this thread is a Worker's.
[[nodiscard]] bool on_worker_thread();

}  // namespace shima
