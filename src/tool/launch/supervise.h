// Runs a launcher as a child, transparently to both sides.
#pragma once

#include <csignal>

#include "tool/common/failure.h"
#include "tool/common/process.h"

namespace shima::tool {

// Starts `command`, forwards signals, waits; returns its exit code, or 128 + its signal.
[[nodiscard]] Outcome<int> supervise(const Command& command);

// The end of a child, and the signals that a launcher forwards.
[[nodiscard]] sigset_t watched_signals();

}  // namespace shima::tool
