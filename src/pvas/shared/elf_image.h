// What is in an ELF file, and whether it can be a task's program or its loader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace shima::pvas {

struct Segment {
  std::uint64_t address;  // before it is moved to where it is loaded
  std::uint64_t offset;
  std::uint64_t file_bytes;
  std::uint64_t memory_bytes;
  int protection;  // PROT_
};

struct ElfImage {
  std::vector<Segment> segments;  // in the order of their addresses
  std::uint64_t span = 0;         // bytes from address 0 to the last one's end, whole pages
  std::uint64_t align = 0;
  std::uint64_t entry = 0;
  std::uint64_t headers = 0;  // where the program headers are in memory
  std::uint64_t header_count = 0;
  std::uint64_t header_bytes = 0;
  bool executable_stack = false;
  std::optional<std::string> interpreter;  // the dynamic loader
};

// Reads and judges; `name` is for messages. What can never be a task (no ELF file, another
// machine's, not position-independent) is Code::unsupported_operation.
[[nodiscard]] Result<ElfImage> read_elf_image(int fd, const std::string& name);

inline constexpr std::uint64_t page_bytes = 4096;
[[nodiscard]] constexpr std::uint64_t page_down(std::uint64_t x) { return x & ~(page_bytes - 1); }
[[nodiscard]] constexpr std::uint64_t page_up(std::uint64_t x) {
  return page_down(x + page_bytes - 1);
}

}  // namespace shima::pvas
