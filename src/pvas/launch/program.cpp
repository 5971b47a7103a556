#include "pvas/launch/program.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "base/unique_fd.h"
#include "pvas/shared/elf_image.h"

namespace shima::pvas {
namespace {

constexpr int most_scripts = 4;  // nested script interpreters, as many as the kernel allows

std::unexpected<Error> refuse(const std::string& name, const std::string& rule) {
  return fail(Code::unsupported_operation, name + " " + rule);
}

bool is_executable(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

Result<std::string> search_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  std::string directories = path != nullptr ? path : "/usr/bin:/bin";
  for (std::size_t begin = 0; begin <= directories.size();) {
    const std::size_t end = std::min(directories.find(':', begin), directories.size());
    const std::string directory = directories.substr(begin, end - begin);
    std::string candidate = (directory.empty() ? "." : directory) + "/" + name;
    if (is_executable(candidate)) return candidate;
    begin = end + 1;
  }
  return fail(Code::no_such_file, name + " was not found in any directory of PATH");
}

// A set-uid program cannot get its rights inside an existing process.
Status judge_rights(int fd, const std::string& path) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return fail_errno(errno, "reading the attributes of " + path);
  if (!S_ISREG(info.st_mode)) return fail(Code::access_denied, path + " is not a file", EACCES);
  if (::access(path.c_str(), X_OK) != 0) return fail_errno(errno, "executing " + path);
  const bool sets_group = (info.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
  if ((info.st_mode & S_ISUID) != 0 || sets_group)
    return refuse(path, "is set-user-ID or set-group-ID");
  if (::fgetxattr(fd, "security.capability", nullptr, 0) > 0)
    return refuse(path, "has file capabilities");
  return {};
}

struct Interpreter {
  std::string file;
  std::string argument;
};

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Parses the first line of a script: "#!interpreter" and at most one argument.
std::optional<Interpreter> interpreter_of(int fd) {
  std::array<char, 256> bytes{};
  const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), 0);
  if (got < 3 || bytes[0] != '#' || bytes[1] != '!') return {};
  std::string line(bytes.data() + 2, static_cast<std::size_t>(got) - 2);
  line = trimmed(line.substr(0, line.find('\n')));
  const auto space = line.find_first_of(" \t");
  if (space == std::string::npos) return Interpreter{line, {}};
  return Interpreter{line.substr(0, space), trimmed(line.substr(space))};
}

// env(1) would execute the interpreter and so leave the space; therefore it is looked up here.
Result<Interpreter> without_env(Interpreter found, const std::string& script) {
  if (found.file.substr(found.file.rfind('/') + 1) != "env" || found.argument.empty()) return found;
  if (found.argument.front() == '-' || found.argument.find_first_of("= \t") != std::string::npos)
    return refuse(script, "is a script of `env " + found.argument + "`, which cannot be a task");
  SHIMA_TRY_ASSIGN(const std::string file, search_path(found.argument));
  return Interpreter{file, {}};
}

Status judge_loader(const ElfImage& image, const std::string& path) {
  if (!image.interpreter) return {};
  const std::string& loader = *image.interpreter;
  if (::access(loader.c_str(), R_OK) != 0)
    return refuse(path, "needs the loader " + loader + ", which does not exist or cannot be read");
  const UniqueFd fd(::open(loader.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening " + loader);
  SHIMA_TRY_ASSIGN(const ElfImage found, read_elf_image(fd.get(), loader));
  if (found.interpreter)
    return refuse(path, "needs the loader " + loader + ", which itself needs a loader");
  return {};
}

}  // namespace

Result<Program> find_program(const std::string& name, std::vector<std::string> arguments) {
  SHIMA_TRY_ASSIGN(std::string file, search_path(name));
  Program program{file, file, std::move(arguments)};
  for (int depth = 0; depth <= most_scripts; ++depth) {
    const UniqueFd fd(::open(program.file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return fail_errno(errno, "opening " + program.file);
    SHIMA_TRY(judge_rights(fd.get(), program.file));
    auto script = interpreter_of(fd.get());
    if (!script) {
      SHIMA_TRY_ASSIGN(const ElfImage image, read_elf_image(fd.get(), program.file));
      SHIMA_TRY(judge_loader(image, program.file));
      return program;
    }
    SHIMA_TRY_ASSIGN(const Interpreter interpreter, without_env(*script, program.file));
    std::vector<std::string> before{interpreter.file};
    if (!interpreter.argument.empty()) before.push_back(interpreter.argument);
    before.push_back(program.file);
    program.arguments.erase(program.arguments.begin(),
                            program.arguments.begin() + (program.arguments.empty() ? 0 : 1));
    program.arguments.insert(program.arguments.begin(), before.begin(), before.end());
    program.file = interpreter.file;
  }
  return fail_errno(
      ELOOP, name + ": scripts as interpreters of scripts are nested too deeply (at most 4)");
}

}  // namespace shima::pvas
