// Binds this library's calls of PMPI_ to the MPI that it serves.
//
// The symbol search order has the first MPI of a process that Shima has made visible before all
// that come later by dlopen. A build for a second MPI would call the first one.  So each build asks
// its own MPI's library for the calls, and puts them where the linkage table would find them later.
#include <elf.h>
#include <link.h>

#include <string_view>

#include "mpiio/mpi/real_mpi.h"

// The first byte of this library.
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start;

namespace shima {
namespace {

#if defined(__aarch64__)
constexpr auto jump_slot = R_AARCH64_JUMP_SLOT;
#else
constexpr auto jump_slot = R_X86_64_JUMP_SLOT;
#endif

// The linkage table as the dynamic section describes it.
struct LinkageTable {
  const ElfW(Rela) * entries = nullptr;
  std::size_t count = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
};

// Some loaders leave addresses in the dynamic section unrelocated.
template <class T>
const T* at(ElfW(Addr) address) {
  const auto base = reinterpret_cast<ElfW(Addr)>(&__ehdr_start);
  return reinterpret_cast<const T*>(address < base ? base + address : address);
}

LinkageTable own_linkage_table() {
  LinkageTable table;
  for (const ElfW(Dyn)* entry = _DYNAMIC; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_JMPREL) table.entries = at<ElfW(Rela)>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_PLTRELSZ) table.count = entry->d_un.d_val / sizeof(ElfW(Rela));
    if (entry->d_tag == DT_SYMTAB) table.symbols = at<ElfW(Sym)>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_STRTAB) table.names = at<char>(entry->d_un.d_ptr);
  }
  return table;
}

// The linker is told to bind lazily, so the table can be written to.
__attribute__((constructor)) void bind_own_mpi_calls() {
  const LinkageTable table = own_linkage_table();
  const auto base = reinterpret_cast<ElfW(Addr)>(&__ehdr_start);
  for (std::size_t i = 0; i < table.count; ++i) {
    const ElfW(Rela)& entry = table.entries[i];
    const ElfW(Sym)& symbol = table.symbols[ELF64_R_SYM(entry.r_info)];
    const char* const name = table.names + symbol.st_name;
    if (ELF64_R_TYPE(entry.r_info) != jump_slot || symbol.st_shndx != SHN_UNDEF) continue;
    if (!std::string_view(name).starts_with("PMPI_")) continue;
    if (void* const call = ::dlsym(real_library(), name); call != nullptr)
      *reinterpret_cast<void**>(base + entry.r_offset) = call;
  }
}

}  // namespace
}  // namespace shima
