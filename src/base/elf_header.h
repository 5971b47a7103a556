// Validates the header of an ELF file. Uses no libc, because the audit library uses it too.
#pragma once

#include <elf.h>
#include <link.h>

namespace shima {

// Of this machine's class (32 or 64 bits).
using ElfHeader = ElfW(Ehdr);
using ElfSegment = ElfW(Phdr);

enum class ElfFlaw { none, not_elf, other_class, damaged_segments };

// No program or library has more segments. The limit bounds the reader's work on a damaged file.
inline constexpr unsigned max_elf_segments = 256;

[[nodiscard]] constexpr ElfFlaw flaw_of(const ElfHeader& header) {
  constexpr unsigned char own_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  const unsigned char* const ident = header.e_ident;
  if (ident[EI_MAG0] != ELFMAG0 || ident[EI_MAG1] != ELFMAG1 || ident[EI_MAG2] != ELFMAG2 ||
      ident[EI_MAG3] != ELFMAG3)
    return ElfFlaw::not_elf;
  if (ident[EI_CLASS] != own_class || ident[EI_DATA] != ELFDATA2LSB) return ElfFlaw::other_class;
  if (header.e_phentsize != sizeof(ElfSegment) || header.e_phnum == 0 ||
      header.e_phnum > max_elf_segments)
    return ElfFlaw::damaged_segments;
  return ElfFlaw::none;
}

}  // namespace shima
