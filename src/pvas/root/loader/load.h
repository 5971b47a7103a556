// Programs and loaders in a partition.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "pvas/shared/board.h"
#include "pvas/shared/elf_image.h"

namespace shima::pvas {

struct Loaded {
  std::uint64_t base = 0;  // where address 0 of the file is
  std::uint64_t end = 0;
  unsigned placed_calls = 0;  // calls of mmap and its kin that were redirected
  unsigned origin_names = 0;  // "/proc/self/exe" that were replaced
};

// What a loader (ld.so, or a program without one) is changed in: its system calls that map memory
// go to `window`, and where it would ask /proc/self/exe, which is the root, it asks
// /dev/fd/`origin_fd`.
struct PrivateCopy {
  Window* window;
  int origin_fd;
};

// Maps a file's segments at or after `where`; with `copy`, changes them before anybody executes
// them.
[[nodiscard]] Result<Loaded> load_image(int fd, const ElfImage& image, std::uint64_t where,
                                        const PrivateCopy* copy, const std::string& name);

// Pages without content; `protection` is PROT_.
[[nodiscard]] Status map_pages(std::uint64_t address, std::uint64_t bytes, int protection);

}  // namespace shima::pvas
