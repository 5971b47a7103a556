// The command line of `shima top`.
#pragma once

#include <CLI/CLI.hpp>

#include "tool/top/top_command.h"

namespace shima::tool {

[[nodiscard]] CLI::App* add_top_command(CLI::App& app, TopOptions& options);

}  // namespace shima::tool
