// The command line of `shima dse`.
#pragma once

#include <CLI/CLI.hpp>

#include "tool/dse/dse_command.h"

namespace shima::tool {

[[nodiscard]] CLI::App* add_dse_run(CLI::App& app, DseOptions& options);
// Beside it: what it starts on each host; not in the help.
[[nodiscard]] CLI::App* add_dse_daemon(CLI::App& run);

}  // namespace shima::tool
