// Fills a partition with a program that is about to start.
//
// From its beginning: the Control and what the process needs to enter its program; a random number
// of unmapped pages; the program; its loader; the stack; then everything the task maps.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "pvas/root/inside/task_entry.h"
#include "pvas/shared/space_state.h"
#include "pvas/shared/wire.h"

namespace shima::pvas {

struct TaskFile {
  UniqueFd fd;
  int number;  // in the task
};

struct Partition {
  Control* control = nullptr;
  EntryOrder* entry = nullptr;  // without what is known only when the process is created
  int origin_number = 0;        // descriptor of the program's own file, in the task
  UniqueFd program;
};

[[nodiscard]] inline std::uint64_t partition_address(const SpaceState& space_state, int task) {
  return space_state.first_partition +
         static_cast<std::uint64_t>(task) * space_state.partition_size;
}

// After an error, parts of it may be mapped.
[[nodiscard]] Result<Partition> fill_partition(SpaceState& space_state, int task,
                                               const SpawnOrder& order,
                                               const std::vector<TaskFile>& files);

}  // namespace shima::pvas
