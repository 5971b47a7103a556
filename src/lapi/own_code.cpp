// The code of this task that an address names.
//
// A program for LAPI may name a handler by the address that it has in the sender. It is the same
// here if both are processes that load the program at the same place. Tasks of one address space
// load it at different places, and the sender's address is the sender's copy, whose variables are
// the sender's: the place in the same file that this task has loaded is meant.
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "lapi/own_memory.h"

namespace shima::lapi {
namespace {

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  [[nodiscard]] bool has(std::uint64_t address) const { return address >= begin && address < end; }
};

// Code of a file in memory.
struct Mapping {
  Range range;
  std::uint64_t offset = 0;
  std::string file;  // device and inode
};

// The code that the loader of this task has loaded.
std::vector<Range> loaded_code() {
  std::vector<Range> all;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* into) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          const std::uint64_t begin = info->dlpi_addr + part.p_vaddr;
          if (part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0)
            static_cast<std::vector<Range>*>(into)->push_back({begin, begin + part.p_memsz});
        }
        return 0;
      },
      &all);
  return all;
}

std::optional<Mapping> code_of_file(const std::string& line) {
  Mapping mapping;
  std::array<char, 5> rights{};
  std::array<char, 24> device{};
  std::uint64_t inode = 0;
  const int got = std::sscanf(  // NOLINT(*-err34-c,bugprone-unchecked-*): the kernel's text
      line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %23s %" SCNu64, &mapping.range.begin,
      &mapping.range.end, rights.data(), &mapping.offset, device.data(), &inode);
  if (got != 6 || inode == 0 || rights[2] != 'x') return {};
  mapping.file = std::string(device.data()) + " " + std::to_string(inode);
  return mapping;
}

}  // namespace

std::uint64_t own_code_at(std::uint64_t address) {
  const std::vector<Range> loaded = loaded_code();
  const auto is_own = [&](const Range& range) {
    return std::ranges::any_of(
        loaded, [&](const Range& one) { return one.begin < range.end && range.begin < one.end; });
  };
  if (is_own({address, address + 1})) return address;
  std::vector<Mapping> own;
  std::optional<Mapping> named;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const auto mapping = code_of_file(line);
    if (!mapping) continue;
    if (mapping->range.has(address)) named = mapping;
    if (is_own(mapping->range)) own.push_back(*mapping);
  }
  if (!named) return address;
  const std::uint64_t place = address - named->range.begin + named->offset;
  for (const Mapping& mapping : own) {
    const std::uint64_t here = mapping.range.begin + (place - mapping.offset);
    if (mapping.file == named->file && place >= mapping.offset && mapping.range.has(here))
      return here;
  }
  return address;
}

}  // namespace shima::lapi
