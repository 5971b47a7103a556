#include "dse/descendants.h"

#include <dirent.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>

namespace shima::dse {
namespace {

// The parent of a process; 0 if it has ended.
pid_t parent_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(file, line);
  // The name, in parentheses, may have any characters.
  const auto end = line.rfind(')');
  if (end == std::string::npos || end + 4 > line.size()) return 0;
  const char* const at = line.c_str() + end + 4;  // after the state
  return static_cast<pid_t>(std::strtol(at, nullptr, 10));
}

}  // namespace

void become_reaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<pid_t> descendants() {
  std::multimap<pid_t, pid_t> children;
  const std::unique_ptr<DIR, int (*)(DIR*)> all(::opendir("/proc"), ::closedir);
  while (const dirent* entry = all ? ::readdir(all.get()) : nullptr) {
    pid_t process = 0;
    const char* const end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, process).ptr == end && process > 0)
      children.emplace(parent_of(process), process);
  }
  std::vector<pid_t> found{::getpid()};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto child = begin; child != end; ++child) found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

void kill_descendants() {
  constexpr int pause_ms = 5;
  while (true) {
    for (const pid_t process : descendants()) ::kill(process, SIGKILL);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
    if (::waitpid(-1, nullptr, WNOHANG) < 0) return;  // no child, so no descendant
    ::poll(nullptr, 0, pause_ms);
  }
}

}  // namespace shima::dse
