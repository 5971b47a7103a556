#include "pvas/shared/elf_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace shima::pvas {
namespace {

constexpr std::uint64_t longest_interpreter = 4096;

std::unexpected<Error> refuse(const std::string& name, const char* rule) {
  return fail(Code::unsupported_operation, name + " " + rule);
}

Status read_exactly(int fd, void* bytes, std::size_t size, std::uint64_t offset,
                    const std::string& name) {
  const ssize_t got = ::pread(fd, bytes, size, static_cast<off_t>(offset));
  if (got < 0) return fail_errno(errno, "reading " + name);
  if (static_cast<std::size_t>(got) != size) return refuse(name, "is truncated");
  return {};
}

Status judge_header(const ElfHeader& header, const std::string& name) {
  switch (flaw_of(header)) {
    case ElfFlaw::none:
      return {};
    case ElfFlaw::not_elf:
      return refuse(name, "is not an ELF file");
    case ElfFlaw::other_class:
      return refuse(name, "is not for this machine");
    case ElfFlaw::damaged_segments:
      return refuse(name, "has damaged program headers");
  }
  return fail(Code::internal, "reading the ELF header of " + name);
}

Result<std::string> read_interpreter(int fd, const ElfSegment& segment, const std::string& name) {
  if (segment.p_filesz < 2 || segment.p_filesz > longest_interpreter)
    return refuse(name, "has a damaged name of its loader");
  std::string text(segment.p_filesz, '\0');
  SHIMA_TRY(read_exactly(fd, text.data(), text.size(), segment.p_offset, name));
  text.resize(std::strlen(text.c_str()));
  if (text.empty()) return refuse(name, "has a damaged name of its loader");
  return text;
}

}  // namespace

Result<ElfFile> read_elf_file(int fd, const std::string& name) {
  ElfFile file;
  if (::pread(fd, &file.header, sizeof file.header, 0) < ssize_t{sizeof file.header})
    return refuse(name, "is not an ELF file");
  SHIMA_TRY(judge_header(file.header, name));
  file.segments.resize(file.header.e_phnum);
  SHIMA_TRY(read_exactly(fd, file.segments.data(), file.segments.size() * sizeof(ElfSegment),
                         file.header.e_phoff, name));
  const auto interpreter = std::ranges::find(file.segments, PT_INTERP, &ElfSegment::p_type);
  if (interpreter != file.segments.end()) {
    SHIMA_TRY_ASSIGN(file.interpreter, read_interpreter(fd, *interpreter, name));
  }
  return file;
}

}  // namespace shima::pvas
