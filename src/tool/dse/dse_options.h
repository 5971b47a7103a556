// The command line of `shima dse`.
#pragma once

#include <CLI/CLI.hpp>

#include "tool/dse/dse_command.h"

namespace shima::tool {

struct DseCommands {
  CLI::App* run = nullptr;
  CLI::App* daemon = nullptr;
};
[[nodiscard]] DseCommands add_dse_commands(CLI::App& app, DseOptions& options);

}  // namespace shima::tool
