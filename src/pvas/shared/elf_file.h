// Reads the headers of an ELF program or library; nothing is mapped or run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/elf_header.h"
#include "base/result.h"

namespace shima::pvas {

struct ElfFile {
  ElfHeader header{};
  std::vector<ElfSegment> segments;        // the program headers
  std::optional<std::string> interpreter;  // the path in PT_INTERP: the dynamic loader
};

// `name` is for messages. unsupported_operation if the file is not an ELF file of this machine's
// class, or is damaged.
[[nodiscard]] Result<ElfFile> read_elf_file(int fd, const std::string& name);

}  // namespace shima::pvas
