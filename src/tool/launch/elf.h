// Reads from the first bytes of a program how it is started.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace shima::tool {

// What kind of file a program is.
enum class ProgramKind { dynamic_elf, static_elf, script, unknown };

struct ProgramFile {
  ProgramKind kind = ProgramKind::unknown;
  std::string loader;                // dynamic_elf: the path in PT_INTERP
  std::vector<std::string> shebang;  // script: the words after #!
};

[[nodiscard]] ProgramFile inspect_program(const std::filesystem::path& path);

}  // namespace shima::tool
