// A dynamic ELF program names its loader in a PT_INTERP segment; one without it is static (a
// static PIE has a dynamic section, but still no PT_INTERP).  Only the headers are read, nothing is
// mapped or run.
#include "tool/launch/elf.h"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <sstream>

namespace shima::tool {
namespace {

template <class T>
bool read_at(std::ifstream& file, std::uint64_t offset, T* object, std::size_t size = sizeof(T)) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(
      file.read(reinterpret_cast<char*>(object), static_cast<std::streamsize>(size)));
}

std::string read_loader(std::ifstream& file, const Elf64_Phdr& segment) {
  constexpr std::uint64_t longest_path = 4096;
  if (segment.p_filesz == 0 || segment.p_filesz > longest_path) return {};
  std::string path(segment.p_filesz, '\0');
  if (!read_at(file, segment.p_offset, path.data(), path.size())) return {};
  return path.c_str();  // drops the terminating zero
}

ProgramFile inspect_elf(std::ifstream& file) {
  Elf64_Ehdr header;
  if (!read_at(file, 0, &header) || header.e_ident[EI_CLASS] != ELFCLASS64) return {};
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return {};
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_at(file, header.e_phoff + i * sizeof segment, &segment)) return {};
    if (segment.p_type != PT_INTERP) continue;
    std::string loader = read_loader(file, segment);
    if (loader.empty()) return {};
    return {ProgramKind::dynamic_elf, std::move(loader), {}};
  }
  return {ProgramKind::static_elf, {}, {}};
}

ProgramFile inspect_script(std::ifstream& file) {
  std::string line;
  file.clear();
  file.seekg(2);
  std::getline(file, line);
  std::istringstream words(line);
  ProgramFile script{ProgramKind::script, {}, {}};
  for (std::string word; words >> word;) script.shebang.push_back(word);
  return script;
}

}  // namespace

ProgramFile inspect_program(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[SELFMAG] = {};
  file.read(magic, sizeof magic);
  if (std::memcmp(magic, ELFMAG, SELFMAG) == 0) return inspect_elf(file);
  if (magic[0] == '#' && magic[1] == '!') return inspect_script(file);
  return {};
}

}  // namespace shima::tool
