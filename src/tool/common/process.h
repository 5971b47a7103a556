// Finds other programs, runs them for their output, and replaces this process by them.
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
  int status = -1;     // exit code, 128 + signal, or -1 if it could not be started
  std::string output;  // stdout, and stderr if requested
};

// Runs a program with an empty stdin and without LD_PRELOAD and LD_AUDIT, and waits.  `environment`
// holds "NAME=value" additions.
enum class Stderr { drop, capture };
[[nodiscard]] Answer ask(const Command& command, const Command& environment = {},
                         Stderr errors = Stderr::drop);

// Replaces this process by `command`; returns only on failure.  A plain name is looked up in PATH,
// then in the working directory if it is one of the places.
enum class Places { path, path_and_working_directory };
[[nodiscard]] Failure become(const Command& command, Places places = Places::path);

// The directory of this executable.
[[nodiscard]] std::filesystem::path own_directory();
[[nodiscard]] std::filesystem::path own_path();

// The value of an environment variable, empty if it is not set.
[[nodiscard]] std::string environment_value(const char* name);

}  // namespace shima::tool
