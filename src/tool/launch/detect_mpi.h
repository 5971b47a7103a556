// Which MPI a command uses.
#pragma once

#include <string>
#include <string_view>

#include "tool/common/process.h"
#include "tool/launch/builds.h"

namespace shima::tool {

// What --mpi says for "whichever a process loads".
inline constexpr std::string_view any_mpi = "any";

// Finds it out from the program, or from the program among the arguments that it starts (env,
// numactl, gdb --args).  No build: something that may start MPI programs, and does not show which.
[[nodiscard]] Outcome<UsedMpi> detect_mpi(const Command& command);

// What the user said instead: a build's name, the path of a libmpi, or "any".
[[nodiscard]] Outcome<UsedMpi> mpi_from_user(const std::string& name_or_library);

}  // namespace shima::tool
