// Reads an ELF file and decides whether it can be a task's program or its loader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace shima::pvas {

struct Segment {
  std::uint64_t address;  // before relocation
  std::uint64_t offset;
  std::uint64_t file_bytes;
  std::uint64_t memory_bytes;
  int protection;  // PROT_
};

struct ElfImage {
  std::vector<Segment> segments;  // in the order of their addresses
  std::uint64_t span = 0;  // bytes from address 0 to the end of the last segment, in whole pages
  std::uint64_t align = 0;
  std::uint64_t entry = 0;
  std::uint64_t headers = 0;  // address of the program headers
  std::uint64_t header_count = 0;
  std::uint64_t header_bytes = 0;
  bool executable_stack = false;
  std::optional<std::string> interpreter;  // the dynamic loader
};

// Reads and validates; `name` is for messages. unsupported_operation if the file can never be a
// task (not ELF, another machine's, not position-independent).
[[nodiscard]] Result<ElfImage> read_elf_image(int fd, const std::string& name);

inline constexpr std::uint64_t page_bytes = 4096;
[[nodiscard]] constexpr std::uint64_t page_down(std::uint64_t x) { return x & ~(page_bytes - 1); }
[[nodiscard]] constexpr std::uint64_t page_up(std::uint64_t x) {
  return page_down(x + page_bytes - 1);
}

}  // namespace shima::pvas
