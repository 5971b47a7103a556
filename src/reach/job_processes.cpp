#include "reach/job_processes.h"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/launcher.h"

namespace shima {
namespace {

std::string contents(pid_t pid, const char* name) {
  std::ifstream file(fmt::format("/proc/{}/{}", pid, name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The environment with which a process was started.
Environment environment_of(pid_t pid) {
  // Each variable begins after a zero byte.
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

// The name of the job that `pid` is a rank of; empty if it is none or it is unknown.
std::string job_of(pid_t pid, const LauncherPlace& place) {
  if (!place.job.empty() || place.rank < 0) return place.job;
  constexpr int most_ancestors = 64;
  Parentage now = parentage_of(pid);
  for (int i = 0; i < most_ancestors && now.parent > 1; ++i) {
    const pid_t parent = now.parent;
    now = parentage_of(parent);
    if (now.command == "hydra_pmi_proxy") return fmt::format("hydra {}", parent);
  }
  return {};
}

UnderShima look_at_libraries(pid_t pid) {
  const std::string maps = contents(pid, "maps");
  if (maps.find("/libshima-") != std::string::npos) return UnderShima::yes;
  return maps.find("/libmpi") == std::string::npos ? UnderShima::unknown : UnderShima::no;
}

}  // namespace

RankProcess find_rank_process(int rank) {
  static const std::string own_job = job_of(::getpid(), launcher_place());
  RankProcess found;
  if (own_job.empty()) return found;
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(::opendir("/proc"), ::closedir);
  if (!processes) return found;
  while (const dirent* const entry = ::readdir(processes.get())) {
    pid_t pid = 0;
    const std::string_view name = entry->d_name;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc{} || parsed.ptr != name.data() + name.size()) continue;
    const LauncherPlace place = launcher_place(environment_of(pid));
    if (place.rank != rank || job_of(pid, place) != own_job) continue;
    // A rank may be a shell with a program below it, all in one environment.
    const UnderShima seen = look_at_libraries(pid);
    if (seen == UnderShima::yes) return {seen, pid};
    if (seen == UnderShima::no) found = {seen, pid};
  }
  return found;
}

}  // namespace shima
