// Members in one address space: tasks of one space (pvas), or threads of one process.
//
// Each can use the others' addresses directly. The memory of a member that ends disappears with it,
// so the others hold it first and then check that the member still exists.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace shima {

// Identifies the address space of a process; equal values mean the same space.
struct SpacePlace {
  std::uint64_t space = 0;  // 0: none
  std::int32_t root_pid = 0;
  std::int32_t task = -1;
};

[[nodiscard]] SpacePlace own_space_place();

// Keeps the memory of other tasks of this space mapped for its lifetime.
class HeldTasks {
 public:
  HeldTasks() = default;
  HeldTasks(const HeldTasks&) = delete;
  HeldTasks& operator=(const HeldTasks&) = delete;
  ~HeldTasks() { release(); }

  // False if `pid` is not in the caller's address space.
  [[nodiscard]] bool hold(const SpacePlace& place, pid_t pid);
  void release();

 private:
  std::vector<int> tasks_;
};

}  // namespace shima
