// The command line of `shima simulate`.
#pragma once

#include <CLI/CLI.hpp>

#include "tool/simulate/simulate.h"

namespace shima::tool {

[[nodiscard]] CLI::App* add_simulate_command(CLI::App& app, SimulateOptions& options);

}  // namespace shima::tool
