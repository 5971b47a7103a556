#include "pvas/shared/elf_image.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace shima::pvas {
namespace {

constexpr std::uint64_t most_headers = 256;
constexpr std::uint64_t longest_interpreter = 4096;
// A larger program is a damaged file; the limit also keeps sums from overflowing.
constexpr std::uint64_t largest_image = std::uint64_t{1} << 40;

std::unexpected<Error> refuse(const std::string& name, const std::string& rule) {
  return fail(Code::unsupported_operation, name + " " + rule);
}

Status read_exactly(int fd, void* bytes, std::size_t size, std::uint64_t offset,
                    const std::string& name) {
  const ssize_t got = ::pread(fd, bytes, size, static_cast<off_t>(offset));
  if (got < 0) return fail_errno(errno, "reading " + name);
  if (static_cast<std::size_t>(got) != size) return refuse(name, "ends too early");
  return {};
}

Status judge_header(const Elf64_Ehdr& header, const std::string& name) {
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return refuse(name, "is no ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != EM_X86_64)
    return refuse(name, "is not for this machine (x86-64)");
  if (header.e_type == ET_EXEC)
    return refuse(name, "is not position-independent (link it with -pie)");
  if (header.e_type != ET_DYN) return refuse(name, "is not a program");
  if (header.e_entry == 0) return refuse(name, "is a library, not a program");
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 ||
      header.e_phnum > most_headers)
    return refuse(name, "has damaged program headers");
  return {};
}

int protection_of(const Elf64_Phdr& header) {
  return ((header.p_flags & PF_R) != 0 ? PROT_READ : 0) |
         ((header.p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
         ((header.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
}

Status add_segment(ElfImage& image, const Elf64_Phdr& header, const std::string& name) {
  const bool damaged =
      header.p_vaddr >= largest_image || header.p_memsz >= largest_image ||
      header.p_filesz > header.p_memsz || header.p_offset >= largest_image ||
      header.p_vaddr % page_bytes != header.p_offset % page_bytes ||
      (header.p_align & (header.p_align - 1)) != 0 ||
      (!image.segments.empty() && header.p_vaddr < page_up(image.segments.back().address +
                                                           image.segments.back().memory_bytes));
  if (damaged) return refuse(name, "has segments that cannot be loaded");
  image.segments.push_back(
      {header.p_vaddr, header.p_offset, header.p_filesz, header.p_memsz, protection_of(header)});
  image.span = std::max(image.span, page_up(header.p_vaddr + header.p_memsz));
  image.align = std::max({image.align, header.p_align, page_bytes});
  return {};
}

Result<std::string> read_interpreter(int fd, const Elf64_Phdr& header, const std::string& name) {
  if (header.p_filesz < 2 || header.p_filesz > longest_interpreter)
    return refuse(name, "has a damaged loader's name");
  std::string text(header.p_filesz, '\0');
  SHIMA_TRY(read_exactly(fd, text.data(), text.size(), header.p_offset, name));
  text.resize(std::strlen(text.c_str()));
  return text;
}

// Without PT_PHDR, the headers lie in the segment that maps their file offset.
std::uint64_t headers_in_memory(const ElfImage& image, std::uint64_t offset) {
  for (const Segment& segment : image.segments)
    if (offset >= segment.offset && offset < segment.offset + segment.file_bytes)
      return segment.address + (offset - segment.offset);
  return 0;
}

}  // namespace

Result<ElfImage> read_elf_image(int fd, const std::string& name) {
  Elf64_Ehdr header{};
  if (::pread(fd, &header, sizeof header, 0) < static_cast<ssize_t>(sizeof header))
    return refuse(name, "is no ELF file");
  SHIMA_TRY(judge_header(header, name));
  std::vector<Elf64_Phdr> headers(header.e_phnum);
  SHIMA_TRY(
      read_exactly(fd, headers.data(), headers.size() * sizeof(Elf64_Phdr), header.e_phoff, name));
  ElfImage image;
  image.entry = header.e_entry;
  image.header_count = header.e_phnum;
  image.header_bytes = header.e_phentsize;
  for (const Elf64_Phdr& part : headers) {
    if (part.p_type == PT_LOAD) SHIMA_TRY(add_segment(image, part, name));
    if (part.p_type == PT_GNU_STACK) image.executable_stack = (part.p_flags & PF_X) != 0;
    if (part.p_type == PT_INTERP) {
      SHIMA_TRY_ASSIGN(image.interpreter, read_interpreter(fd, part, name));
    }
  }
  if (image.segments.empty()) return refuse(name, "has nothing to load");
  if (image.entry >= image.span) return refuse(name, "begins outside of itself");
  image.headers = headers_in_memory(image, header.e_phoff);
  return image;
}

}  // namespace shima::pvas
