// Memory and a file descriptor in reserve for the root.
//
// If the address space is limited, tasks can use all of it. The root must survive that, because its
// death would kill all tasks. What it needs to report exits and to refuse new work is reserved.
// `new` falls back to the reserve.
#pragma once

#include "base/unique_fd.h"

namespace shima::pvas {

// Fills the reserve; once per process.
void keep_reserve();

// False if the reserve was used and cannot be refilled: then nothing new should be started.
[[nodiscard]] bool reserve_is_whole();

// A reserved descriptor, to accept and refuse a connection when no other descriptor is free.
class SpareNumber {
 public:
  SpareNumber() { take(); }
  // Tries again to reserve one.
  void take();
  // Frees the descriptor for the duration of `use`. Backs off after a failure so that clients do
  // not reconnect in a loop.
  template <class Use>
  void lend(Use use) {
    const bool whole = static_cast<bool>(file_);
    file_ = UniqueFd();
    use();
    take();
    if (!whole) rest();
  }

 private:
  static void rest();

  UniqueFd file_;
};

}  // namespace shima::pvas
