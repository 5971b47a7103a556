// From what a user names to what is loaded: scripts become their interpreter, and what cannot be a
// task is refused with the reason, before a space is asked.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace shima::pvas {

struct Program {
  std::string file;                    // the ELF file that becomes the task
  std::string shown;                   // as AT_EXECFN says it: what was named
  std::vector<std::string> arguments;  // argv
};

// `name` is a path, or a word to look for in PATH; `arguments` is its argv, whose
// first is its name. A script's interpreter gets the script as kernels pass it.
[[nodiscard]] Result<Program> find_program(const std::string& name,
                                           std::vector<std::string> arguments);

}  // namespace shima::pvas
