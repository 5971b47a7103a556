// Members that live in one address space: tasks of one space (pvas), or threads of one process.
//
// Each can use the others' addresses as its own. What has to be seen to is that a member that ends
// takes its memory along: the others hold it first, and look then whether it is still there.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace shima {

// Where a process is, for others to compare; the same words mean the same space.
struct SpacePlace {
  std::uint64_t space = 0;  // 0: in none
  std::int32_t root_pid = 0;
  std::int32_t task = -1;
};

[[nodiscard]] SpacePlace own_space_place();

// Keeps the memory of other tasks of this space where it is, as long as this lives.
class HeldTasks {
 public:
  HeldTasks() = default;
  HeldTasks(const HeldTasks&) = delete;
  HeldTasks& operator=(const HeldTasks&) = delete;
  ~HeldTasks() { release(); }

  // False where `pid` is not, or is no more, in the caller's address space.
  [[nodiscard]] bool hold(const SpacePlace& place, pid_t pid);
  void release();

 private:
  std::vector<int> tasks_;
};

}  // namespace shima
