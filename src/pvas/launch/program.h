// From a program's name to the file that is loaded: a script becomes its interpreter, and a program
// that cannot be a task is refused with the reason before a space is contacted.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace shima::pvas {

struct Program {
  std::string file;                    // the ELF file that becomes the task
  std::string shown;                   // AT_EXECFN: the path as given
  std::vector<std::string> arguments;  // argv
};

// `name` is a path, or a word that is looked up in PATH; `arguments` is its argv, whose first entry
// is its name. A script's interpreter gets the script as the kernel would pass it.
[[nodiscard]] Result<Program> find_program(const std::string& name,
                                           std::vector<std::string> arguments);

}  // namespace shima::pvas
