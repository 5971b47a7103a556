#include "pvas/shared/elf_image.h"

#include <sys/mman.h>

#include <algorithm>

#include "pvas/shared/elf_file.h"

namespace shima::pvas {
namespace {

// A larger program is a damaged file; the limit also keeps sums from overflowing.
constexpr std::uint64_t largest_image = std::uint64_t{1} << 40;

std::unexpected<Error> refuse(const std::string& name, const std::string& rule) {
  return fail(Code::unsupported_operation, name + " " + rule);
}

Status judge_header(const ElfHeader& header, const std::string& name) {
  if (header.e_machine != EM_X86_64) return refuse(name, "is not for this machine (x86-64)");
  if (header.e_type == ET_EXEC)
    return refuse(name, "is not position-independent (link it with -pie)");
  if (header.e_type != ET_DYN) return refuse(name, "is not a program");
  if (header.e_entry == 0) return refuse(name, "is a library, not a program");
  return {};
}

int protection_of(const ElfSegment& header) {
  return ((header.p_flags & PF_R) != 0 ? PROT_READ : 0) |
         ((header.p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
         ((header.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
}

Status add_segment(ElfImage& image, const ElfSegment& header, const std::string& name) {
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

// Without PT_PHDR, the headers are in the segment that maps their file offset.
std::uint64_t headers_in_memory(const ElfImage& image, std::uint64_t offset) {
  for (const Segment& segment : image.segments)
    if (offset >= segment.offset && offset < segment.offset + segment.file_bytes)
      return segment.address + (offset - segment.offset);
  return 0;
}

}  // namespace

Result<ElfImage> read_elf_image(int fd, const std::string& name) {
  SHIMA_TRY_ASSIGN(ElfFile file, read_elf_file(fd, name));
  SHIMA_TRY(judge_header(file.header, name));
  ElfImage image;
  image.entry = file.header.e_entry;
  image.header_count = file.header.e_phnum;
  image.header_bytes = file.header.e_phentsize;
  image.interpreter = std::move(file.interpreter);
  for (const ElfSegment& part : file.segments) {
    if (part.p_type == PT_LOAD) SHIMA_TRY(add_segment(image, part, name));
    if (part.p_type == PT_GNU_STACK) image.executable_stack = (part.p_flags & PF_X) != 0;
  }
  if (image.segments.empty()) return refuse(name, "has nothing to load");
  if (image.entry >= image.span) return refuse(name, "has an entry point outside its segments");
  image.headers = headers_in_memory(image, file.header.e_phoff);
  return image;
}

}  // namespace shima::pvas
