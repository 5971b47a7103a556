// For tests whose program is its own worker: started as a task with the name of a role, it exits
// with 0 or the number of the line that failed.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#define MUST(condition)                                 \
  do {                                                  \
    if (!(condition)) return (__LINE__ - 40) % 200 + 1; \
  } while (false)

inline std::string own_path() {
  char path[4096] = "";
  return readlink("/proc/self/exe", path, sizeof path - 1) > 0 ? path : "";
}

inline pid_t parent_of(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(stat, text);
  int parent = 0;
  char state = 0;
  std::sscanf(text.c_str() + text.rfind(')') + 1, " %c %d", &state, &parent);
  return parent;
}

// Whether the process does not exist or is a zombie.
inline bool has_ended(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  return !std::getline(stat, text) || text.find(") Z") != std::string::npos;
}

// The limit for events that must happen: reached only on failure, so long enough for a busy
// machine.
constexpr int guard_ms = 60'000;

inline bool eventually(const std::function<bool()>& condition,
                       std::chrono::milliseconds limit = std::chrono::milliseconds{guard_ms}) {
  for (const auto end = std::chrono::steady_clock::now() + limit;
       std::chrono::steady_clock::now() < end;
       std::this_thread::sleep_for(std::chrono::milliseconds{5}))
    if (condition()) return true;
  return condition();
}
