// The dynamic section is found by its program header. It has the address of the string table in
// memory, which the loaded segments map to an offset in the file.
#include "audit/soname.h"

#include <fcntl.h>

#include "base/elf_header.h"

namespace shima::audit {
namespace {

using Entry = ElfW(Dyn);

constexpr unsigned most_entries = 512;

class File {
 public:
  explicit File(const char* path)
      : fd_(system_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), O_RDONLY | O_CLOEXEC,
                        0)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) system_call(SYS_close, fd_, 0, 0, 0);
  }

  template <class T>
  [[nodiscard]] bool read(std::uint64_t offset, T& object) const {
    return read_some(offset, &object, sizeof object) == sizeof object;
  }
  [[nodiscard]] std::size_t read_some(std::uint64_t offset, void* to, std::size_t size) const {
    const long got = system_call(SYS_pread64, fd_, reinterpret_cast<long>(to),
                                 static_cast<long>(size), static_cast<long>(offset));
    return got < 0 ? 0 : static_cast<std::size_t>(got);
  }

 private:
  long fd_;
};

// The first segment of a type that holds `address`; any address if none is given.
bool find_segment(const File& file, const ElfHeader& header, unsigned type,
                  const std::uint64_t* address, ElfSegment& segment) {
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    if (!file.read(header.e_phoff + i * sizeof segment, segment)) return false;
    if (segment.p_type != type) continue;
    if (address == nullptr || *address - segment.p_vaddr < segment.p_filesz) return true;
  }
  return false;
}

}  // namespace

bool read_soname(const char* path, Path& soname) {
  const File file(path);
  ElfHeader header{};
  ElfSegment dynamic{};
  if (!file.read(0, header) || flaw_of(header) != ElfFlaw::none || header.e_type != ET_DYN)
    return false;
  if (!find_segment(file, header, PT_DYNAMIC, nullptr, dynamic)) return false;
  std::uint64_t strings = 0;
  std::uint64_t name = 0;
  for (unsigned i = 0; i < most_entries && i * sizeof(Entry) < dynamic.p_filesz; ++i) {
    Entry entry{};
    if (!file.read(dynamic.p_offset + i * sizeof entry, entry) || entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_STRTAB) strings = entry.d_un.d_ptr;
    if (entry.d_tag == DT_SONAME) name = entry.d_un.d_val;
  }
  ElfSegment holder{};
  if (name == 0 || !find_segment(file, header, PT_LOAD, &strings, holder)) return false;
  soname.clear();
  const std::uint64_t offset = strings - holder.p_vaddr + holder.p_offset + name;
  const std::size_t got = file.read_some(offset, soname.text, longest_path - 1);
  soname.text[got] = '\0';
  soname.size = std::string_view(soname.text).size();
  return soname.size > 0;
}

}  // namespace shima::audit
