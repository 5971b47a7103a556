// What must not exist after a space has ended: its processes, its socket names, its descriptors in
// the caller.
#pragma once

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "pvas/worker.h"

// Makes this process the subreaper of its descendants, so that leftover ones can be counted.
inline void adopt_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

inline std::vector<pid_t> numbers_in(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(directory.c_str()), closedir);
  std::vector<pid_t> numbers;
  while (const dirent* entry = open ? readdir(open.get()) : nullptr)
    if (const int number = std::atoi(entry->d_name); number > 0) numbers.push_back(number);
  return numbers;
}

inline std::string name_of_process(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

inline std::vector<pid_t> children_of(pid_t process) {
  std::vector<pid_t> children;
  for (const pid_t other : numbers_in("/proc"))
    if (parent_of(other) == process) children.push_back(other);
  return children;
}

inline std::size_t open_files_of(pid_t process) {
  return numbers_in("/proc/" + std::to_string(process) + "/fd").size();
}

inline int lines_of(const std::string& file) {
  std::ifstream stream(file);
  int count = 0;
  for (std::string line; std::getline(stream, line);) ++count;
  return count;
}

// Socket names that contain `text`.
inline int sockets_named(const std::string& text) {
  std::ifstream sockets("/proc/net/unix");
  int count = 0;
  for (std::string line; std::getline(sockets, line);)
    if (line.find("@shima-pvas-") != std::string::npos && line.find(text) != std::string::npos)
      ++count;
  return count;
}

// Reaps all zombies; returns whether no child is left.
inline bool no_process_is_left() {
  pid_t found = 0;
  do found = waitpid(-1, nullptr, WNOHANG);
  while (found > 0);
  return found < 0 && errno == ECHILD;
}

inline std::string names_of_children() {
  std::string names;
  for (const pid_t child : children_of(getpid())) names += " " + name_of_process(child);
  return names;
}
