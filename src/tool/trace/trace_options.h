// The command line of `shima trace`.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "tool/trace/trace_command.h"

namespace shima::tool {

// `chosen` becomes the command's action if it is the one that was given.
void add_trace_command(CLI::App& app, std::function<Outcome<int>()>& chosen);

}  // namespace shima::tool
