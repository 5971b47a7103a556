// Other programs: finding them, asking them, and becoming them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tool/common/failure.h"

namespace shima::tool {

using Command = std::vector<std::string>;

// The executable file that execvp would run for `name`.
[[nodiscard]] std::optional<std::filesystem::path> find_program(const std::string& name);

struct Answer {
  int status = -1;     // exit code, 128 + signal, or -1 where it could not be started
  std::string output;  // stdout, and stderr where asked for
};

// Runs a program with nothing on its stdin and nothing of ours in it, and waits.  `environment`
// holds "NAME=value" additions.
enum class Stderr { drop, capture };
[[nodiscard]] Answer ask(const Command& command, const Command& environment = {},
                         Stderr errors = Stderr::drop);

// Becomes `command`; returns only where that failed.
[[nodiscard]] Failure become(const Command& command);

// The directory of this executable.
[[nodiscard]] std::filesystem::path own_directory();
[[nodiscard]] std::filesystem::path own_path();

// The value of an environment variable, empty where it is not set.
[[nodiscard]] std::string environment_value(const char* name);

}  // namespace shima::tool
