// A dynamic ELF program names its loader in a PT_INTERP segment; one without it is static (a
// static PIE has a dynamic section, but still no PT_INTERP).  Only the headers are read, nothing is
// mapped or run.
#include "tool/launch/elf.h"

#include <fcntl.h>

#include <fstream>
#include <sstream>

#include "base/unique_fd.h"
#include "pvas/shared/elf_file.h"

namespace shima::tool {
namespace {

ProgramFile inspect_elf(const std::filesystem::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  auto file = pvas::read_elf_file(fd.get(), path.native());
  if (!file) return {};
  if (!file->interpreter) return {ProgramKind::static_elf, {}, {}};
  return {ProgramKind::dynamic_elf, *std::move(file->interpreter), {}};
}

ProgramFile inspect_script(std::ifstream& file) {
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  ProgramFile script{ProgramKind::script, {}, {}};
  for (std::string word; words >> word;) script.shebang.push_back(word);
  return script;
}

}  // namespace

ProgramFile inspect_program(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[2] = {};
  file.read(magic, sizeof magic);
  if (magic[0] == '#' && magic[1] == '!') return inspect_script(file);
  return inspect_elf(path);
}

}  // namespace shima::tool
