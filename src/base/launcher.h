// What launchers tell a process of its job in the environment, before MPI has started.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace shima {

// The value of an environment variable, if it is set.
using Environment = std::function<std::optional<std::string>(const char* name)>;
[[nodiscard]] std::optional<std::string> own_environment(const char* name);

// Whether the launcher says that all ranks of the job run on this node. False where it says nothing
// or where two launchers, one inside the other, contradict each other.
[[nodiscard]] bool launched_on_one_node(const Environment& environment = own_environment);

// Tells the processes of a node apart, where the launcher says enough.
struct LauncherPlace {
  std::string job;  // of the processes that share an MPI_COMM_WORLD; empty: the launcher's number
                    // of it is not in the environment
  int rank = -1;    // -1: unknown
  bool spawned = false;  // by MPI_Comm_spawn, where the job has no name
};
[[nodiscard]] LauncherPlace launcher_place(const Environment& environment = own_environment);

}  // namespace shima
