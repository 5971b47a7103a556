// Which MPI a program uses.
#pragma once

#include <string>

#include "tool/common/process.h"
#include "tool/launch/preload.h"

namespace shima::tool {

// Finds it out from the program itself; `command` is the program and its arguments.
[[nodiscard]] Outcome<UsedMpi> detect_mpi(const Command& command);

// What the user said instead: a build's name or the path of a libmpi.
[[nodiscard]] Outcome<UsedMpi> mpi_from_user(const std::string& name_or_library);

}  // namespace shima::tool
