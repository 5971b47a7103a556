// The command line of `shima top`.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "tool/top/top_command.h"

namespace shima::tool {

// `chosen` becomes the command's action if it is the one that was given.
void add_top_command(CLI::App& app, std::function<Outcome<int>()>& chosen);

}  // namespace shima::tool
