#include "mpiio/pnetcdf/code_ranges.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/elf_header.h"
#include "base/unique_fd.h"

namespace shima {
namespace {

using Section = ElfW(Shdr);
using Symbol = ElfW(Sym);

// A file in memory. All that its tables say about places is checked.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat facts{};
    if (!fd || ::fstat(fd.get(), &facts) != 0 || facts.st_size <= 0) return;
    const auto size = static_cast<std::size_t>(facts.st_size);
    void* const start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (start != MAP_FAILED) bytes_ = {static_cast<const char*>(start), size};
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }

  // Empty if they are not in the file.
  template <class T>
  [[nodiscard]] std::span<const T> items(std::uint64_t offset, std::uint64_t count) const {
    const bool fits = offset <= bytes_.size() && offset % alignof(T) == 0 &&
                      count <= (bytes_.size() - offset) / sizeof(T);
    if (!fits) return {};
    return {reinterpret_cast<const T*>(bytes_.data() + offset), count};
  }

 private:
  std::span<const char> bytes_;
};

std::span<const Section> sections_of(const MappedFile& file) {
  const auto header = file.items<ElfHeader>(0, 1);
  if (header.empty() || flaw_of(header[0]) != ElfFlaw::none ||
      header[0].e_shentsize != sizeof(Section))
    return {};
  return file.items<Section>(header[0].e_shoff, header[0].e_shnum);
}

bool is_one_of(std::string_view symbol, std::span<const std::string_view> names) {
  return std::ranges::find(names, symbol.substr(0, symbol.find('.'))) != names.end();
}

}  // namespace

std::vector<CodeRange> functions_in(const std::string& path, std::uintptr_t base,
                                    std::span<const std::string_view> names) {
  const MappedFile file(path);
  const auto sections = sections_of(file);
  auto table = std::ranges::find(sections, ElfW(Word){SHT_SYMTAB}, &Section::sh_type);
  if (table == sections.end())
    table = std::ranges::find(sections, ElfW(Word){SHT_DYNSYM}, &Section::sh_type);
  if (table == sections.end() || table->sh_link >= sections.size()) return {};
  const Section& strings = sections[table->sh_link];
  const auto text = file.items<char>(strings.sh_offset, strings.sh_size);
  if (text.empty() || text.back() != '\0') return {};
  std::vector<CodeRange> found;
  for (const Symbol& symbol :
       file.items<Symbol>(table->sh_offset, table->sh_size / sizeof(Symbol))) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
        symbol.st_name >= text.size() || !is_one_of(text.data() + symbol.st_name, names))
      continue;
    found.push_back({base + symbol.st_value, base + symbol.st_value + symbol.st_size});
  }
  return found;
}

}  // namespace shima
