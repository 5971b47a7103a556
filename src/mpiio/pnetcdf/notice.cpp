// Finds PnetCDF in the process, and what else calls MPI and removes files by name, and puts Shima's
// functions into their slots.
//
// PnetCDF is in a library that imports MPI_File_open and the POSIX calls, or in the program if it
// is linked statically. A library libpnetcdf.* is PnetCDF as a whole. Elsewhere the symbol table of
// the file says where PnetCDF's functions are, because the rest of that code may want the master
// file's text. Slots that the loader has made read-only become writable for the moment of the
// change.
#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/elf_header.h"
#include "base/log.h"
#include "base/page_size.h"
#include "base/result.h"
#include "device/symbols.h"
#include "mpiio/mpi/linkage.h"
#include "mpiio/pnetcdf/code_ranges.h"
#include "mpiio/pnetcdf/pnetcdf.h"
#include "mpiio/pnetcdf/posix_calls.h"

namespace shima {
namespace {

// Those that make the calls, and those into which a compiler may have put them.
constexpr std::array<std::string_view, 7> functions_of_pnetcdf{
    "ncmpi_inq_file_format", "ncmpi_open",   "ncmpi_create",     "ncmpio_open",
    "ncmpio_create",         "ncmpi_delete", "PNCIO_File_delete"};

// Not if a library of the program has a function of its own by this name. Found out before any
// search, in which another thread may hold the lock of the loader.
const bool removes_by_c_library = []() noexcept {
  Dl_info facts{};
  if (::dladdr(reinterpret_cast<const void*>(&::remove), &facts) == 0) return true;
  const std::string_view path = facts.dli_fname;
  return path.starts_with("libc.") || path.find("/libc.") != std::string_view::npos;
}();

struct Import {
  void** slot;
  void* ours;
  PosixCall::Callers callers;
};

// A loaded program or library.
class Object {
 public:
  explicit Object(const dl_phdr_info& facts) : facts_(facts) {}

  // False while another thread is loading the object: its slots would be set again, or moved.
  [[nodiscard]] bool serve_pnetcdf_in_it() const {
    const std::vector<Import> imports = served_imports();
    if (imports.empty()) return true;
    if (!std::ranges::all_of(imports, [&](const Import& one) { return is_bound(one); }))
      return false;
    const bool may_have_pnetcdf =
        std::ranges::find(imports, PosixCall::Callers::pnetcdf, &Import::callers) != imports.end();
    const std::vector<CodeRange> code =
        may_have_pnetcdf ? code_of_pnetcdf() : std::vector<CodeRange>{};
    const bool has_pnetcdf = !code.empty() && std::ranges::all_of(code, add_code_of_pnetcdf);
    for (const Import& import : imports) {
      if ((has_pnetcdf || import.callers == PosixCall::Callers::any) && !put(import))
        log(LogLevel::warn,
            "{}: its linkage table cannot be changed, so its POSIX calls find no striped files",
            file());
    }
    if (has_pnetcdf)
      log(LogLevel::debug, "{}: has PnetCDF, whose POSIX calls find striped files", file());
    return true;
  }

 private:
  [[nodiscard]] std::span<const ElfSegment> segments() const {
    return {facts_.dlpi_phdr, facts_.dlpi_phnum};
  }
  [[nodiscard]] const ElfSegment* segment(ElfW(Word) type) const {
    const auto found = std::ranges::find(segments(), type, &ElfSegment::p_type);
    return found == segments().end() ? nullptr : &*found;
  }
  [[nodiscard]] std::uintptr_t begin_of(const ElfSegment& one) const {
    return facts_.dlpi_addr + one.p_vaddr;
  }

  // Whether `path` is the file that this object was loaded from.
  [[nodiscard]] bool is_from(const char* path) const {
    ElfHeader header{};
    std::ifstream in(path, std::ios::binary);
    in.read(reinterpret_cast<char*>(&header), sizeof header);
    if (!in || flaw_of(header) != ElfFlaw::none || header.e_phnum != segments().size())
      return false;
    std::vector<ElfSegment> described(header.e_phnum);
    in.seekg(static_cast<std::streamoff>(header.e_phoff));
    in.read(reinterpret_cast<char*>(described.data()),
            static_cast<std::streamsize>(segments().size_bytes()));
    return in && std::memcmp(described.data(), segments().data(), segments().size_bytes()) == 0;
  }

  // Tasks in one address space are not what /proc says.
  [[nodiscard]] std::string file() const {
    if (*facts_.dlpi_name != '\0') return facts_.dlpi_name;
    const auto* const started = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
    for (const char* const path : {"/proc/self/exe", started})
      if (path != nullptr && is_from(path)) return path;
    return "";
  }

  // All if the object imports MPI_File_open, too; those that are served for any caller if it
  // imports another call of MPI. Others, among them Shima's own libraries, are left alone.
  [[nodiscard]] std::vector<Import> served_imports() const {
    const ElfSegment* const dynamic = segment(PT_DYNAMIC);
    if (dynamic == nullptr) return {};
    const auto linkage =
        Linkage::of(reinterpret_cast<const ElfW(Dyn)*>(begin_of(*dynamic)), facts_.dlpi_addr);
    std::vector<Import> imports;
    bool uses_files = false;
    bool uses_mpi = false;
    const auto note = [&](std::string_view name, void** slot) {
      if (name == "MPI_File_open") uses_files = true;
      if (name.starts_with("MPI_")) uses_mpi = true;
      for (const PosixCall& call : served_posix_calls())
        if (name == call.name && (name != "remove" || removes_by_c_library))
          imports.push_back({slot, call.function, call.callers});
    };
    linkage.for_each_import(linkage.calls, note);
    linkage.for_each_import(linkage.data, note);
    if (uses_files) return imports;
    std::erase_if(imports, [&](const Import& one) {
      return !uses_mpi || one.callers != PosixCall::Callers::any;
    });
    return imports;
  }

  [[nodiscard]] std::vector<CodeRange> code_of_pnetcdf() const {
    const std::string path = file();
    if (!std::string_view(path).substr(path.rfind('/') + 1).starts_with("libpnetcdf."))
      return functions_in(path, facts_.dlpi_addr, functions_of_pnetcdf);
    std::vector<CodeRange> code;
    for (const ElfSegment& one : segments())
      if (one.p_type == PT_LOAD && (one.p_flags & PF_X) != 0)
        code.push_back({begin_of(one), begin_of(one) + one.p_memsz});
    return code;
  }

  // Before the loader binds it, a slot of an object that may lie anywhere has 0 or an offset.
  [[nodiscard]] bool is_bound(const Import& import) const {
    std::uintptr_t size = 0;
    for (const ElfSegment& one : segments())
      if (one.p_type == PT_LOAD) size = std::max<std::uintptr_t>(size, one.p_vaddr + one.p_memsz);
    const auto now = reinterpret_cast<std::uintptr_t>(std::atomic_ref(*import.slot).load());
    return facts_.dlpi_addr == 0 || now >= size;
  }

  [[nodiscard]] bool put(const Import& import) const {
    const auto page = page_size();
    const auto slot = reinterpret_cast<std::uintptr_t>(import.slot);
    auto* const its_page = reinterpret_cast<void*>(slot / page * page);
    const ElfSegment* const relro = segment(PT_GNU_RELRO);
    // The loader protects whole pages.
    const bool is_protected = relro != nullptr && slot >= begin_of(*relro) / page * page &&
                              slot < (begin_of(*relro) + relro->p_memsz) / page * page;
    if (is_protected && ::mprotect(its_page, page, PROT_READ | PROT_WRITE) != 0) return false;
    std::atomic_ref(*import.slot).store(import.ours);
    if (is_protected) ::mprotect(its_page, page, PROT_READ);
    return true;
  }

  const dl_phdr_info& facts_;
};

// The objects that have been looked at. After one has been unloaded, another may be in its place.
struct Seen {
  std::set<std::pair<std::uintptr_t, std::string>> objects;
  std::uint64_t unloads = 0;
  bool is_complete = true;
};

void report(const Status& looked) {
  if (!looked) log(LogLevel::warn, "looking for PnetCDF: {}", describe(looked.error()));
}

// No exception may pass through the loader.
int look_at(dl_phdr_info* facts, std::size_t, void* data) {
  Seen& seen = *static_cast<Seen*>(data);
  report(caught([&]() -> Status {
    if (seen.unloads != facts->dlpi_subs) seen.objects.clear();
    seen.unloads = facts->dlpi_subs;
    const auto [place, is_new] = seen.objects.emplace(facts->dlpi_addr, facts->dlpi_name);
    if (!is_new || Object(*facts).serve_pnetcdf_in_it()) return {};
    seen.objects.erase(place);
    seen.is_complete = false;
    return {};
  }));
  return 0;
}

std::atomic<std::uint64_t> loads_seen;

Status look_for_pnetcdf() {
  static auto& seen = *new Seen;  // MPI may be called after this library's destructors
  static std::mutex one_search;
  const std::lock_guard lock(one_search);
  const std::uint64_t loads = loads_so_far();
  if (loads == loads_seen.load(std::memory_order_relaxed)) return {};
  seen.is_complete = true;
  ::dl_iterate_phdr(&look_at, &seen);
  if (seen.is_complete) loads_seen.store(loads, std::memory_order_release);
  return {};
}

}  // namespace

void notice_pnetcdf() noexcept {
  if (loads_so_far() != loads_seen.load(std::memory_order_acquire))
    report(caught(look_for_pnetcdf));
}

}  // namespace shima
