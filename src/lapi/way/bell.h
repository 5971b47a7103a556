// How a task is told that something has arrived for it.
//
// Threads of the program that wait (they *attend*) or poll in a loop serve messages themselves.
// Only if none does, a message wakes the helper thread, unless the task has turned interrupts off.
// Plain data in memory that the tasks of a node map.
#pragma once

#include <atomic>
#include <cstdint>

#include "ipc/wait.h"

namespace shima::lapi {

struct Bell {
  Event attendants;
  Event helper;
  std::atomic<std::uint32_t> attending{0};
  std::atomic<std::uint32_t> polling{0};
  std::atomic<std::uint32_t> interrupts{1};

  // After something has been stored with sequential consistency.
  void ring() {
    if (attending.load(std::memory_order_seq_cst) != 0 ||
        polling.load(std::memory_order_seq_cst) != 0)
      attendants.wake();
    else if (interrupts.load(std::memory_order_seq_cst) != 0)
      helper.wake();
  }
  // Wakes every thread of the task.
  void ring_all() {
    attendants.post();
    helper.post();
  }
};

}  // namespace shima::lapi
