// Finds the launcher of an MPI. A launcher of another MPI starts N programs of one rank each, so
// the search begins beside the library, and each candidate is identified by its --version.
//
// Open MPI refuses to start more ranks than cores, and to run as root. Containers need both, so
// options on its command line permit both.
#include "tool/launch/mpiexec.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>

#include "base/process/cpu_mask.h"

extern char** environ;

namespace shima::tool {
namespace fs = std::filesystem;
namespace {

// Cores, not hardware threads: Open MPI counts one slot per core.
int usable_cores() {
  const CpuMask mask = CpuMask::own();
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CpuMask::most_cpus; ++cpu) {
    if (!mask.has(cpu)) continue;
    const auto topology = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
    std::string package, core;
    std::ifstream(topology + "physical_package_id") >> package;
    std::ifstream(topology + "core_id") >> core;
    cores.insert(core.empty() ? fmt::format("cpu{}", cpu) : package + "." + core);
  }
  return std::max(1, static_cast<int>(cores.size()));
}

// Debian's /lib and /bin are links into /usr; Open MPI takes the directory it is started from for
// its installation, and does not accept "/".
fs::path with_real_directory(const fs::path& path) {
  std::error_code error;
  const fs::path directory = fs::canonical(path.parent_path(), error);
  return error ? path : directory / path.filename();
}

std::vector<fs::path> candidates(const UsedMpi& mpi) {
  std::vector<fs::path> paths;
  if (mpi.build == nullptr) {
    for (const char* name : {"mpiexec", "mpiexec.hydra"})
      if (auto found = find_program(name)) paths.push_back(*found);
    return paths;
  }
  const std::string suffix = mpi.build->family == MpiFamily::openmpi ? ".openmpi" : ".mpich";
  if (!mpi.library.empty()) {
    // <prefix>/lib/libmpi.so and <prefix>/lib/x86_64-linux-gnu/openmpi/lib/libmpi.so
    fs::path prefix = with_real_directory(mpi.library).parent_path();
    for (int up = 0; up < 4 && prefix.has_relative_path(); ++up) {
      prefix = prefix.parent_path();
      for (const std::string& name : {"mpiexec" + suffix, std::string("mpiexec")})
        paths.push_back(prefix / "bin" / name);
    }
  }
  for (const std::string& name :
       {"mpiexec" + suffix, std::string("mpiexec"), std::string("mpiexec.hydra")})
    if (auto found = find_program(name)) paths.push_back(*found);
  return paths;
}

bool starts(const Mpiexec& mpiexec, const UsedMpi& mpi) {
  const bool any = mpi.build == nullptr || mpi.build->family == MpiFamily::standard;
  return any ? mpiexec.family.has_value() : mpiexec.family == mpi.build->family;
}

Outcome<Mpiexec> check_users_choice(const UsedMpi& mpi, const std::string& name) {
  const auto path = find_program(name);
  if (!path)
    return refuse("--mpiexec " + name, "there is no such executable file", "check the path");
  Mpiexec found = identify_mpiexec(*path);
  if (found.family && !starts(found, mpi))
    return refuse("--mpiexec " + name,
                  fmt::format("belongs to {}, and the program uses {}", name_of(*found.family),
                              name_of(mpi.build->family)),
                  "name that MPI's mpiexec, or omit the option");
  return found;
}

bool has_any(const std::vector<std::string>& words, std::initializer_list<const char*> wanted) {
  for (const std::string& word : words)
    for (const char* option : wanted)
      if (word == option) return true;
  return false;
}

// Ranks on this node inherit the settings; for other nodes Open MPI must export them.
void forward_settings(Command& command, std::string_view also = "SHIMA_") {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string setting = *entry;
    if (!setting.starts_with("SHIMA_") && !setting.starts_with(also)) continue;
    command.emplace_back("-x");
    command.push_back(setting.substr(0, setting.find('=')));
  }
}

// Whether the user or a scheduler chose the nodes. Their cores cannot be counted here.
bool chooses_nodes(const std::vector<std::string>& extra) {
  if (has_any(extra, {"--host", "-host", "-H", "--hostfile", "-hostfile", "--machinefile",
                      "-machinefile", "--default-hostfile"}))
    return true;
  for (const char* scheduler : {"SLURM_JOB_ID", "PBS_NODEFILE", "LSB_HOSTS", "PE_HOSTFILE"})
    if (std::getenv(scheduler) != nullptr) return true;
  return false;
}

void add_openmpi_options(Command& command, const Mpiexec& mpiexec, int ranks,
                         const std::vector<std::string>& extra) {
  if (geteuid() == 0) command.emplace_back("--allow-run-as-root");
  forward_settings(command);
  if (ranks <= usable_cores() || chooses_nodes(extra)) return;
  if (!has_any(extra, {"--map-by", "-map-by", "--oversubscribe", "--rankfile", "--ppr"})) {
    if (mpiexec.major() >= 5)
      command.insert(command.end(), {"--map-by", ":OVERSUBSCRIBE"});
    else
      command.emplace_back("--oversubscribe");
  }
  if (!has_any(extra, {"--bind-to", "-bind-to"}))
    command.insert(command.end(), {"--bind-to", "none"});
}

}  // namespace

int Mpiexec::major() const {
  int number = 0;
  std::from_chars(version.data(), version.data() + version.size(), number);
  return number;
}

Mpiexec identify_mpiexec(const fs::path& name) {
  const fs::path path = with_real_directory(name);
  const Answer answer = ask({path.string(), "--version"}, {}, Stderr::capture);
  Mpiexec mpiexec{path, {}, {}};
  std::smatch match;
  static const std::regex hydra(R"(Version:\s+([0-9][^\s]*))");
  static const std::regex number(R"(([0-9]+\.[0-9][^\s]*))");
  const std::string& text = answer.output;
  if (text.find("HYDRA") != std::string::npos) {
    mpiexec.family = MpiFamily::mpich;
    if (std::regex_search(text, match, hydra)) mpiexec.version = match[1];
    return mpiexec;
  }
  if (text.find("Open MPI") != std::string::npos || text.find("OpenRTE") != std::string::npos)
    mpiexec.family = MpiFamily::openmpi;
  else if (text.find("Intel(R) MPI") != std::string::npos)
    mpiexec.family = MpiFamily::mpich;
  if (std::regex_search(text, match, number)) mpiexec.version = match[1];
  return mpiexec;
}

Outcome<Mpiexec> find_mpiexec(const UsedMpi& mpi, const std::string& from_user) {
  if (!from_user.empty()) return check_users_choice(mpi, from_user);
  for (const fs::path& path : candidates(mpi)) {
    if (access(path.c_str(), X_OK) != 0) continue;
    Mpiexec found = identify_mpiexec(path);
    if (starts(found, mpi)) return found;
  }
  if (mpi.build == nullptr)
    return refuse("the program", "its MPI cannot be detected, and no mpiexec is in PATH",
                  "name the launcher with --mpiexec");
  return refuse(
      mpi.library.empty() ? sonames_of(*mpi.build) : mpi.library.string(),
      fmt::format("no mpiexec of {} was found beside it or in PATH", name_of(mpi.build->family)),
      "name it with --mpiexec, or start the job with its own launcher: "
      "`srun shima exec prog`");
}

Command launcher_command(const Mpiexec& mpiexec, int ranks, const std::vector<std::string>& extra) {
  Command command{mpiexec.path.string(), "-n", std::to_string(ranks)};
  if (mpiexec.family == MpiFamily::openmpi) add_openmpi_options(command, mpiexec, ranks, extra);
  command.insert(command.end(), extra.begin(), extra.end());
  return command;
}

bool is_launcher(const Command& command) {
  static const std::set<std::string, std::less<>> others{"srun", "prun", "aprun", "jsrun"};
  const std::string name = fs::path(command.front()).filename().string();
  const auto starts_with = [&](const char* word) { return name.starts_with(word); };
  return starts_with("mpiexec") || starts_with("mpirun") || starts_with("orterun") ||
         starts_with("prterun") || others.contains(name);
}

Command with_forwarded_settings(const Command& command) {
  const auto path = find_program(command.front());
  if (!path || !is_launcher(command)) return command;
  if (identify_mpiexec(*path).family != MpiFamily::openmpi) return command;
  Command with{command.front()};
  forward_settings(with, "LD_AUDIT=");
  with.insert(with.end(), command.begin() + 1, command.end());
  return with;
}

}  // namespace shima::tool
