#include "group/job_processes.h"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "audit/names.h"
#include "base/file_text.h"
#include "base/process/launcher.h"

namespace shima {
namespace {

// Empty if it cannot be read: the process may end at any time.
std::string contents(pid_t pid, const char* name) {
  return file_text(fmt::format("/proc/{}/{}", pid, name)).value_or(std::string());
}

// The environment that a process was started with.
Environment environment_of(pid_t pid) {
  // With a leading zero byte, so that each variable follows one.
  return [text = std::string(1, '\0') +
                 contents(pid, "environ")](const char* name) -> std::optional<std::string> {
    const std::string begin = std::string(1, '\0') + name + '=';
    const auto at = text.find(begin);
    if (at == std::string::npos) return std::nullopt;
    return std::string(text.c_str() + at + begin.size());
  };
}

struct Parentage {
  std::string command;
  pid_t parent = 0;
};

Parentage parentage_of(pid_t pid) {
  const std::string stat = contents(pid, "stat");  // "PID (command) S PARENT ..."
  const auto open = stat.find('(');
  const auto close = stat.rfind(')');
  Parentage found;
  if (open == std::string::npos || close == std::string::npos || close + 4 > stat.size())
    return found;
  found.command = stat.substr(open + 1, close - open - 1);
  std::from_chars(stat.data() + close + 4, stat.data() + stat.size(), found.parent);
  return found;
}

// The job and rank of process `pid`; empty if it is not a rank, or unknown.
struct Job {
  std::string name;
  std::string launcher;  // the same for all jobs that one mpiexec starts, also by MPI_Comm_spawn
};

// Open MPI numbers the jobs of a launcher: "prterun-node1-4711@2" or, before version 5, in the low
// half of a number.
std::string launcher_of(const std::string& name) {
  constexpr std::uint64_t jobs_of_launcher = 1U << 16;
  if (const auto at = name.rfind('@'); at != std::string::npos) return name.substr(0, at);
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = parsed.ec == std::errc{} && parsed.ptr == name.data() + name.size();
  return whole ? fmt::format("{}", number / jobs_of_launcher) : name;
}

// One Hydra server may serve a job and the jobs that it spawns.
Job job_of(pid_t pid, const LauncherPlace& place) {
  if (!place.job.empty()) return {place.job, launcher_of(place.job)};
  if (place.rank < 0) return {};
  constexpr int most_ancestors = 64;
  Parentage now = parentage_of(pid);
  for (int i = 0; i < most_ancestors && now.parent > 1; ++i) {
    const pid_t parent = now.parent;
    now = parentage_of(parent);
    if (now.command == "hydra_pmi_proxy")
      return {fmt::format("{} {}", parent, place.spawned), fmt::format("{}", now.parent)};
  }
  return {};
}

// The file name in a line of /proc/PID/maps, also of a file that has been replaced meanwhile.
std::string_view mapped_file(std::string_view line) {
  constexpr std::string_view deleted = " (deleted)";
  if (line.ends_with(deleted)) line.remove_suffix(deleted.size());
  const auto slash = line.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : line.substr(slash + 1);
}

UnderShima look_at_libraries(pid_t pid) {
  std::istringstream maps(contents(pid, "maps"));
  UnderShima seen = UnderShima::unknown;
  for (std::string line; std::getline(maps, line);) {
    const std::string_view file = mapped_file(line);
    if (std::ranges::find(audit::libraries, file, &audit::Libraries::build) !=
        audit::libraries.end())
      return UnderShima::yes;
    if (audit::looks_like_mpi(file)) seen = UnderShima::no;
  }
  return seen;
}

// Calls `visit(pid, place, job)` for every process on this node that a launcher has started.
template <class Visit>
void for_each_rank(Visit visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(::opendir("/proc"), ::closedir);
  if (!processes) return;
  while (const dirent* const entry = ::readdir(processes.get())) {
    pid_t pid = 0;
    const std::string_view name = entry->d_name;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc{} || parsed.ptr != name.data() + name.size()) continue;
    const LauncherPlace place = launcher_place(environment_of(pid));
    if (place.rank >= 0) visit(pid, place, job_of(pid, place));
  }
}

const Job& own_job() {
  static const Job job = job_of(::getpid(), launcher_place());
  return job;
}

}  // namespace

RankProcess find_rank_process(int rank) {
  RankProcess found;
  if (own_job().name.empty()) return found;
  for_each_rank([&](pid_t pid, const LauncherPlace& place, const Job& job) {
    if (place.rank != rank || job.name != own_job().name) return;
    // A rank may be a shell with a child program, both with the same environment.
    const UnderShima seen = look_at_libraries(pid);
    if (seen == UnderShima::yes || (seen == UnderShima::no && found.pid == 0)) found = {seen, pid};
  });
  return found;
}

std::optional<FoundRank> find_rank_without_shima(FunctionRef<bool(int)> is_wanted,
                                                 std::set<int>& under) {
  if (own_job().name.empty()) return std::nullopt;
  std::map<int, pid_t> stock;  // a rank may be a shell, too (see above)
  for_each_rank([&](pid_t pid, const LauncherPlace& place, const Job& job) {
    if (job.name != own_job().name || !is_wanted(place.rank) || under.contains(place.rank)) return;
    const UnderShima seen = look_at_libraries(pid);
    if (seen == UnderShima::yes) under.insert(place.rank);
    if (seen == UnderShima::no) stock.emplace(place.rank, pid);
  });
  for (const auto& [rank, pid] : stock)
    if (!under.contains(rank)) return FoundRank{rank, pid};
  return std::nullopt;
}

bool related_jobs_under_shima(int least) {
  int under = 0;
  int without = 0;
  if (own_job().launcher.empty()) return false;
  for_each_rank([&](pid_t pid, const LauncherPlace&, const Job& job) {
    if (job.launcher != own_job().launcher || job.name == own_job().name) return;
    const UnderShima seen = look_at_libraries(pid);
    if (seen == UnderShima::yes) ++under;
    if (seen == UnderShima::no) ++without;
  });
  return under >= least && without == 0;
}

}  // namespace shima
