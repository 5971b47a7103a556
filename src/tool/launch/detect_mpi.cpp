// Detects the MPI of a program by running the loader, which decides it.
//
// A dynamic ELF program: its loader, started in trace mode, lists every library that the program
// would get, including indirect ones (libhdf5 loads libmpi), with the search path of a real start.
// No code of the program runs.
// A script: the interpreter of its first line.  Python loads MPI when mpi4py is imported, so Python
// imports it without initialising MPI, and prints which libmpi is then mapped.
// A program without MPI may start one with MPI: its arguments are searched for it.
#include "tool/launch/detect_mpi.h"

#include <fmt/format.h>

#include <ranges>
#include <regex>
#include <sstream>

#include "tool/launch/elf.h"

namespace shima::tool {
namespace fs = std::filesystem;
namespace {

constexpr int deepest_script = 4;  // a script whose interpreter is a script whose ...
constexpr const char* say_which = "name the MPI that its processes use with --mpi";

std::string known_sonames() {
  std::string list;
  for (const Build& build : known_builds()) list += (list.empty() ? "" : ", ") + sonames_of(build);
  return list;
}

// The first libmpi that has a build; none if there is no libmpi; an error if none has a build.
Outcome<UsedMpi> choose(const std::string& program, const std::vector<fs::path>& libraries) {
  std::string without_build;
  for (const fs::path& library : libraries) {
    if (!audit::looks_like_mpi(library.native())) continue;
    if (const Build* build = build_for_library(library)) return UsedMpi{build, library};
    without_build = library.filename();
  }
  if (without_build.empty()) return UsedMpi{};
  return refuse(program, fmt::format("uses {}, and Shima has no build for it", without_build),
                fmt::format("link it with an MPI that has one ({}; `shima info` lists them)",
                            known_sonames()));
}

Outcome<UsedMpi> ask_loader(const std::string& program, const fs::path& path,
                            const std::string& loader) {
  const Answer answer =
      ask({loader, fs::absolute(path).string()}, {"LD_TRACE_LOADED_OBJECTS=1"}, Stderr::capture);
  std::vector<fs::path> libraries;
  std::istringstream lines(answer.output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, arrow, where;
    words >> name >> arrow >> where;
    if (arrow == "=>" && where == "not" && audit::looks_like_mpi(name))
      return refuse(program, fmt::format("needs {}, which the loader does not find", name),
                    "add its directory to LD_LIBRARY_PATH");
    if (arrow == "=>" && where.starts_with('/')) libraries.emplace_back(where);
    if (name.starts_with('/')) libraries.emplace_back(name);
  }
  if (libraries.empty())
    return refuse(program, fmt::format("the loader {} cannot load it", loader),
                  "try it without shima first");
  return choose(program, libraries);
}

constexpr const char* python_question = R"(
import os, sys
try:
    import mpi4py
    mpi4py.rc.initialize = mpi4py.rc.finalize = False
    from mpi4py import MPI
except Exception as error:
    print("shima-error:", error)
    sys.exit(0)
for path in {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if "/libmpi" in line}:
    print("shima-library:", path)
)";

Outcome<UsedMpi> ask_python(const std::string& program, const fs::path& python) {
  const Answer answer = ask({python.string(), "-c", python_question});
  std::vector<fs::path> libraries;
  std::istringstream lines(answer.output);
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("shima-error: "))
      return refuse(program,
                    fmt::format("its Python, {}, cannot import mpi4py ({})", python.string(),
                                line.substr(colon + 2)),
                    fmt::format("install mpi4py there, or {}", say_which));
    if (line.starts_with("shima-library: ")) libraries.emplace_back(line.substr(colon + 2));
  }
  if (answer.status != 0)
    return refuse(program, fmt::format("its Python, {}, failed to report its MPI", python.string()),
                  say_which);
  return choose(program, libraries);
}

bool is_python(const fs::path& path) {
  static const std::regex pattern(R"(python([0-9]+(\.[0-9]+)*)?)");
  return std::regex_match(path.filename().native(), pattern);
}

// The interpreter that a first line names: "#!/usr/bin/env -S VAR=1 python3 -u" means python3.
std::string interpreter_of(const std::vector<std::string>& shebang) {
  if (shebang.empty()) return {};
  if (fs::path(shebang.front()).filename() != "env") return shebang.front();
  for (std::size_t i = 1; i < shebang.size(); ++i) {
    const std::string& word = shebang[i];
    if (!word.starts_with('-') && word.find('=') == std::string::npos) return word;
  }
  return {};
}

std::unexpected<Failure> static_program(const std::string& program) {
  return refuse(program, "is linked statically, so Shima cannot be loaded into it",
                "link it dynamically (without -static)");
}

Outcome<UsedMpi> detect(const std::string& program, const std::string& name, int depth) {
  const auto path = find_program(name);
  if (!path)
    return refuse(name, "there is no such executable file", "check the path, its x bit and PATH");
  if (is_python(*path)) return ask_python(program, *path);
  const ProgramFile file = inspect_program(*path);
  if (file.kind == ProgramKind::dynamic_elf) return ask_loader(program, *path, file.loader);
  if (file.kind == ProgramKind::static_elf) return static_program(program);
  if (file.kind == ProgramKind::script && depth < deepest_script)
    if (const std::string next = interpreter_of(file.shebang); !next.empty())
      return detect(program, next, depth + 1);
  return refuse(program, "is neither a 64-bit ELF program nor a script with a #! line", say_which);
}

ProgramKind kind_of(const std::string& name) {
  const auto path = find_program(name);
  return path ? inspect_program(*path).kind : ProgramKind::unknown;
}

}  // namespace

Outcome<UsedMpi> detect_mpi(const Command& command) {
  const std::string& program = command.front();
  const auto kind = kind_of(program);
  auto used = detect(program, program, 0);
  if (used && used->build != nullptr) return used;
  if (!used && kind != ProgramKind::static_elf) return used;
  for (const std::string& word : command | std::views::drop(1))
    if (auto started = detect(word, word, 0); started && started->build != nullptr) return started;
  if (!used || kind == ProgramKind::script || command.size() > 1) return used;
  return refuse(program, "uses no MPI",
                "start it without shima, or, if it starts MPI programs itself, add --mpi any");
}

Outcome<UsedMpi> mpi_from_user(const std::string& name_or_library) {
  if (name_or_library == any_mpi) return UsedMpi{};
  if (const Build* build = build_named(name_or_library)) return UsedMpi{build, {}};
  const fs::path library(name_or_library);
  const Build* build = build_for_library(library);
  if (library.has_parent_path() && fs::exists(library) && build != nullptr)
    return UsedMpi{build, fs::absolute(library)};
  return refuse("--mpi " + name_or_library,
                "is neither a build of Shima nor the path of a libmpi nor \"any\"",
                "`shima info` lists the builds");
}

}  // namespace shima::tool
