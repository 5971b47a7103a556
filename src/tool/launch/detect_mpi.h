// Which MPI a command uses.
#pragma once

#include <string>
#include <string_view>

#include "tool/common/process.h"
#include "tool/launch/builds.h"

namespace shima::tool {

// The value of --mpi that means the MPI that each process loads.
inline constexpr std::string_view any_mpi = "any";

// Detects it from the program, or from a program among its arguments (env, numactl, gdb --args).
// The result has no build if the command may start MPI programs but does not name one.
[[nodiscard]] Outcome<UsedMpi> detect_mpi(const Command& command);

// The user's choice: a build's name, the path of a libmpi, or "any".
[[nodiscard]] Outcome<UsedMpi> mpi_from_user(const std::string& name_or_library);

}  // namespace shima::tool
