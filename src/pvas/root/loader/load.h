// Maps programs and loaders into a partition.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "pvas/shared/elf_image.h"
#include "pvas/shared/space_state.h"

namespace shima::pvas {

struct Loaded {
  std::uint64_t base = 0;  // the address of address 0 of the file
  std::uint64_t end = 0;
  unsigned placed_calls = 0;  // redirected calls of mmap and related functions
  unsigned origin_names = 0;  // replaced occurrences of "/proc/self/exe"
};

// Changes to a loader (ld.so, or a program without one): system calls that map memory are
// redirected to `area`, and the path /proc/self/exe, which is the root's, becomes
// /dev/fd/`origin_fd`.
struct PrivateCopy {
  MappingArea* area;
  int origin_fd;
};

// Maps a file's segments at or after `where`; with `copy`, patches them before they are executed.
[[nodiscard]] Result<Loaded> load_image(int fd, const ElfImage& image, std::uint64_t where,
                                        const PrivateCopy* copy, const std::string& name);

// Maps anonymous pages; `protection` is PROT_.
[[nodiscard]] Status map_pages(std::uint64_t address, std::uint64_t bytes, int protection);

}  // namespace shima::pvas
