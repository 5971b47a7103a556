// What this process shows of itself to `shima top`.
//
// The board is a memfd of this process: it has no name in any directory and ends with the process.
// A reader finds it under /proc/PID/fd, which the kernel allows the same user and root only. Its
// descriptor has a high number, so that the program's own numbers stay the same. If there is no
// shared memory, and in a child of fork, the counters go to private memory that is not read.
//
// Counting costs a few plain instructions in the first thread, which has counters of its own, and
// an atomic addition in all others. The clock is read only around sleeps.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "observe/board_page.h"
#include "observe/call.h"

namespace shima {

struct BoardOwner {
  BoardKind kind = BoardKind::mpi;
  int rank = -1;
  int tasks = -1;
};

// Shows this process; the calling thread is the first one. Later calls change rank and tasks.
// SHIMA_TOP=off prevents it. Never fails.
void show_board(const BoardOwner& owner) noexcept;

// Shows hosts on which tasks of the job run, as tasks that have met know them; they replace what
// the launcher has said. Later calls add to earlier ones. Never fails.
void show_hosts(std::span<const std::string> names) noexcept;

namespace board {

extern constinit BoardPage unseen;
extern constinit std::atomic<BoardPage*> page;
extern constinit std::atomic<const void*> first_thread;

[[nodiscard]] inline const void* this_thread() {
#if defined(__x86_64__)
  const void* pointer = nullptr;
  asm("mov %%fs:0, %0" : "=r"(pointer));
  return pointer;
#else
  return __builtin_thread_pointer();
#endif
}
[[nodiscard]] inline bool is_first_thread() {
  return this_thread() == first_thread.load(std::memory_order_relaxed);
}
inline void add(std::atomic<std::uint64_t>& sum, std::uint64_t value, bool alone) {
  if (alone)
    sum.store(sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  else
    sum.fetch_add(value, std::memory_order_relaxed);
}
inline void add(BoardTally& tally, std::uint64_t bytes, bool alone) {
  add(tally.calls, 1, alone);
  add(tally.bytes, bytes, alone);
}
[[nodiscard]] inline BoardPage& shown() { return *page.load(std::memory_order_relaxed); }

}  // namespace board

// Counts a call.
inline void count(Counted what, std::uint64_t bytes = 0) {
  const bool first = board::is_first_thread();
  BoardLane& lane = board::shown().lanes[first ? 0 : 1];
  board::add(lane.tallies[static_cast<std::size_t>(what)], bytes, first);
}

// An open file, or a target of an I/O node, on the board. Without a free slot it is not shown.
class BoardFile {
 public:
  BoardFile() = default;
  // `key`: the same in all tasks that open it together.
  explicit BoardFile(std::string_view name, std::uint64_t key = 0) noexcept;
  BoardFile(BoardFile&& other) noexcept;
  BoardFile& operator=(BoardFile&& other) noexcept;
  ~BoardFile();

  void moved(Direction direction, std::uint64_t bytes) {
    if (number_ == BoardPage::no_slot) return;
    const bool first = board::is_first_thread();
    BoardFileLane& lane = board::shown().slots[number_].lanes[first ? 0 : 1];
    board::add(direction == Direction::write ? lane.written : lane.read, bytes, first);
  }
  void meets() {
    if (number_ == BoardPage::no_slot) return;
    board::shown().slots[number_].met.fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint32_t number() const { return number_; }

 private:
  std::uint32_t number_ = BoardPage::no_slot;  // in the page at the time of the call
};

// While it lives, what the first thread does in it is shown, and traced, as another thread's.
class AsAnotherThread {
 public:
  AsAnotherThread() : was_first_(board::is_first_thread()) {
    if (was_first_) board::first_thread.store(nullptr, std::memory_order_relaxed);
  }
  AsAnotherThread(const AsAnotherThread&) = delete;
  AsAnotherThread& operator=(const AsAnotherThread&) = delete;
  ~AsAnotherThread() {
    if (was_first_) board::first_thread.store(board::this_thread(), std::memory_order_relaxed);
  }

 private:
  bool was_first_;
};

// Shows a call of the first thread while it lives. Calls of other threads, and calls inside calls,
// are not shown.
class Doing {
 public:
  explicit Doing(CallCode code, BoardFile* file = nullptr, bool is_worth_it = true) {
    if (!is_worth_it || !board::is_first_thread()) return;
    BoardPage& page = board::shown();
    const std::uint64_t before = page.doing.load(std::memory_order_relaxed);
    if ((before & 0xffffU) != 0) return;
    page_ = &page;
    page.last_sleep_end_ns.store(0, std::memory_order_relaxed);  // what follows is another wait
    if (call::is_meeting(code)) {
      if (file != nullptr)
        file->meets();
      else
        page.met.fetch_add(1, std::memory_order_relaxed);
    }
    page.doing.store(pack_doing(static_cast<std::uint32_t>(before >> 32U) + 1,
                                file != nullptr ? file->number() : BoardPage::no_slot, code),
                     std::memory_order_relaxed);
  }
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;
  ~Doing() {
    if (page_ == nullptr) return;
    const std::uint64_t now = page_->doing.load(std::memory_order_relaxed);
    page_->doing.store(now & ~std::uint64_t{0xffffffffU}, std::memory_order_relaxed);
  }

 private:
  BoardPage* page_ = nullptr;
};

// A sleep in a wait.
class Asleep {
 public:
  // `waits_for`: the number of a task; -1: not known.
  explicit Asleep(int waits_for = -1);
  Asleep(const Asleep&) = delete;
  Asleep& operator=(const Asleep&) = delete;
  ~Asleep();

 private:
  Clock::time_point begin_;
  BoardPage* page_ = nullptr;
};

// A change of the number of operations in the background, or of requests that are served.
inline void note_queued(int change) {
  board::shown().queued.fetch_add(change, std::memory_order_relaxed);
}

}  // namespace shima
