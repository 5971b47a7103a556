// Running a launcher as a child that looks, to everybody else, like this process itself.
#pragma once

#include "tool/common/failure.h"
#include "tool/common/process.h"

namespace shima::tool {

// Starts `command`, hands on signals, waits; the value is its exit code, or 128 + its signal.
[[nodiscard]] Outcome<int> supervise(const Command& command);

}  // namespace shima::tool
