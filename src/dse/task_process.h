// A task: a process with pipes for its standard streams, in a process group of its own.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace shima::dse {

struct TaskStart {
  const std::vector<std::string>* program = nullptr;
  std::vector<std::string> environment;
  std::string directory;
  std::vector<int> cpus;  // none: all
  bool has_input = false;
};

struct TaskProcess {
  // The process has started the program when this returns. It is killed when the thread that calls
  // this ends.
  [[nodiscard]] static Result<TaskProcess> start(const TaskStart& start);

  pid_t process = 0;
  std::array<UniqueFd, 2> outputs;  // standard output and error: to read; empty after their end
  UniqueFd input;                   // to write; may be empty
};

}  // namespace shima::dse
