// Starts further programs under Shima.
//
// At the root, the only rank whose command counts, the command becomes `shima exec --mpi any
// --whole-job --spawned -- COMMAND ARGUMENTS`, with the tool installed beside this library.
// Launchers do not pass LD_AUDIT on to spawned processes: these get the environment of mpiexec, not
// of the rank.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/log.h"
#include "mpiio/entry/entry.h"
#include "mpiio/mpi/real_mpi.h"

namespace shima {
namespace {

// The path of the `shima` installed with this library; empty if it is not installed.
const std::string& own_tool() {
  static const std::string tool = [] {
    Dl_info facts{};
    ::dladdr(reinterpret_cast<const void*>(&own_tool), &facts);
    std::error_code none;
    const auto library = std::filesystem::canonical(facts.dli_fname, none);
    const auto beside = library.parent_path() / "../../bin/shima";
    std::string path = beside.lexically_normal().string();
    if (!library.empty() && ::access(path.c_str(), X_OK) == 0) return path;
    log(LogLevel::warn,
        "spawned programs do not run under Shima: cannot find {}; install the whole of Shima",
        path);
    return std::string();
  }();
  return tool;
}

// An info key may tell MPI where to find a command without a path; `shima exec` searches PATH and
// the working directory of the spawned process.
std::string found_in_path_of(MPI_Info info, const std::string& command) {
  if (info == MPI_INFO_NULL || command.find('/') != std::string::npos) return command;
  char directories[4096] = "";
  int found = 0;
  PMPI_Info_get(info, "path", sizeof directories - 1, directories, &found);
  const std::string list = found != 0 ? std::string(directories) + ':' : std::string();
  for (std::size_t begin = 0, end = 0; (end = list.find(':', begin)) != std::string::npos;
       begin = end + 1) {
    const std::string path = list.substr(begin, end - begin) + '/' + command;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return command;
}

// A command and its arguments in the form that MPI takes, run by `shima exec`.
class Command {
 public:
  Command(const char* command, char** arguments, MPI_Info info) {
    words_ = {
        "exec", "--mpi", "any", "--whole-job", "--spawned", "--", found_in_path_of(info, command)};
    for (; arguments != MPI_ARGV_NULL && *arguments != nullptr; ++arguments)
      words_.emplace_back(*arguments);
    for (std::string& word : words_) pointers_.push_back(word.data());
    pointers_.push_back(nullptr);
  }
  [[nodiscard]] char** arguments() { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

bool to_be_changed(int root, MPI_Comm comm) {
  int rank = MPI_PROC_NULL;
  return comm != MPI_COMM_NULL && PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS && rank == root &&
         !own_tool().empty();
}

}  // namespace
}  // namespace shima

using namespace shima;

// MPI defines how many parameters there are.  NOLINTNEXTLINE(readability-function-size)
int MPI_Comm_spawn(const char* command, char* argv[], int maxprocs, MPI_Info info, int root,
                   MPI_Comm comm, MPI_Comm* intercomm, int errcodes[]) {
  if (!to_be_changed(root, comm) || command == nullptr)
    return SHIMA_REAL(Comm_spawn)(command, argv, maxprocs, info, root, comm, intercomm, errcodes);
  Command changed(command, argv, info);
  return SHIMA_REAL(Comm_spawn)(own_tool().c_str(), changed.arguments(), maxprocs, info, root, comm,
                                intercomm, errcodes);
}
SHIMA_EXPORT(Comm_spawn);

// NOLINTNEXTLINE(readability-function-size)
int MPI_Comm_spawn_multiple(int count, char* commands[], char** argvs[], const int maxprocs[],
                            const MPI_Info infos[], int root, MPI_Comm comm, MPI_Comm* intercomm,
                            int errcodes[]) {
  if (!to_be_changed(root, comm) || count < 1 || commands == nullptr)
    return SHIMA_REAL(Comm_spawn_multiple)(count, commands, argvs, maxprocs, infos, root, comm,
                                           intercomm, errcodes);
  std::string tool = own_tool();
  std::vector<Command> changed;
  std::vector<char**> arguments;
  std::vector<char*> tools(static_cast<std::size_t>(count), tool.data());
  changed.reserve(tools.size());
  for (int i = 0; i < count; ++i) {
    char** const given = argvs == MPI_ARGVS_NULL ? MPI_ARGV_NULL : argvs[i];
    changed.emplace_back(commands[i], given, infos == nullptr ? MPI_INFO_NULL : infos[i]);
    arguments.push_back(changed.back().arguments());
  }
  return SHIMA_REAL(Comm_spawn_multiple)(count, tools.data(), arguments.data(), maxprocs, infos,
                                         root, comm, intercomm, errcodes);
}
SHIMA_EXPORT(Comm_spawn_multiple);
