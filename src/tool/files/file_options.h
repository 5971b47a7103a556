// The command line of the subcommands for files.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "tool/common/failure.h"

namespace shima::tool {

// Adds the subcommands; parsing the command line then sets `chosen` to the action.
using Action = std::function<Outcome<int>()>;
void add_file_commands(CLI::App& app, Action& chosen);

}  // namespace shima::tool
