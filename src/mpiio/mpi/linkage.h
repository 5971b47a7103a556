// The slots through which a program or library calls functions of others, as its dynamic section
// describes them.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <span>

namespace shima {

struct Linkage {
  std::span<const ElfW(Rela)> calls;  // the linkage table
  std::span<const ElfW(Rela)> data;   // other relocations: calls without the table, pointers
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  ElfW(Addr) base = 0;

  [[nodiscard]] static Linkage of(const ElfW(Dyn) * dynamic, ElfW(Addr) base) {
    Linkage linkage;
    linkage.base = base;
    std::size_t call_bytes = 0;
    std::size_t data_bytes = 0;
    const ElfW(Rela)* calls = nullptr;
    const ElfW(Rela)* data = nullptr;
    for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
      const ElfW(Addr) address = entry->d_un.d_ptr;
      if (entry->d_tag == DT_JMPREL) calls = linkage.at<ElfW(Rela)>(address);
      if (entry->d_tag == DT_PLTRELSZ) call_bytes = entry->d_un.d_val;
      if (entry->d_tag == DT_RELA) data = linkage.at<ElfW(Rela)>(address);
      if (entry->d_tag == DT_RELASZ) data_bytes = entry->d_un.d_val;
      if (entry->d_tag == DT_SYMTAB) linkage.symbols = linkage.at<ElfW(Sym)>(address);
      if (entry->d_tag == DT_STRTAB) linkage.names = linkage.at<char>(address);
    }
    if (calls != nullptr) linkage.calls = {calls, call_bytes / sizeof(ElfW(Rela))};
    if (data != nullptr) linkage.data = {data, data_bytes / sizeof(ElfW(Rela))};
    return linkage;
  }

  // Calls `visit(name, slot)` for each function of another library that has a slot in `table`.
  template <class Visit>
  void for_each_import(std::span<const ElfW(Rela)> table, Visit visit) const {
    for (const ElfW(Rela) & entry : table) {
      const auto type = ELF64_R_TYPE(entry.r_info);
      if (type != jump_slot && type != address_slot) continue;
      const ElfW(Sym)& symbol = symbols[ELF64_R_SYM(entry.r_info)];
      if (symbol.st_shndx == SHN_UNDEF)
        visit(names + symbol.st_name, reinterpret_cast<void**>(base + entry.r_offset));
    }
  }

 private:
#if defined(__aarch64__)
  static constexpr auto jump_slot = R_AARCH64_JUMP_SLOT;
  static constexpr auto address_slot = R_AARCH64_GLOB_DAT;
#else
  static constexpr auto jump_slot = R_X86_64_JUMP_SLOT;
  static constexpr auto address_slot = R_X86_64_GLOB_DAT;
#endif

  // Some loaders leave addresses in the dynamic section unrelocated.
  template <class T>
  [[nodiscard]] const T* at(ElfW(Addr) address) const {
    return reinterpret_cast<const T*>(address < base ? base + address : address);
  }
};

}  // namespace shima
