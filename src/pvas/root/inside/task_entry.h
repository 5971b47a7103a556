// The first steps of a new process before it enters a task's program.
//
// The process starts as a copy of the root that shares the root's memory and thread pointer. Until
// ld.so has set up the task's own libc, it makes bare system calls and touches only its order and
// its stack.
#pragma once

#include <sys/resource.h>

#include <array>
#include <cstdint>

#include "pvas/shared/space_state.h"

namespace shima::pvas {

inline constexpr int limit_count = 16;  // RLIM_NLIMITS of Linux
inline constexpr int cpu_mask_bytes = 1024;

struct FileMove {
  int from;  // here; after the first pass, its temporary number
  int to;    // in the task
};

// The step that failed, in the order of the steps.
enum class EntryStep : int {
  none,
  parent,
  directory,
  files,
  origin,
  signals,
  affinity,
  limits,
  done,
};

// Stored in the task's own partition, so that the root need not wait until it has been read.
struct EntryOrder {
  Place* place;  // where the process publishes its ID before its program can read it
  int root_pid;
  int directory_fd;
  int origin_fd;  // the program's file, for ld.so
  int origin_at;
  int process_group;  // to join; 0: a new group
  unsigned umask;
  std::uint64_t blocked;  // signal mask
  std::uint64_t ignored;
  int niceness;
  std::array<char, 16> name;
  std::array<rlimit, limit_count> limits;
  std::array<std::uint8_t, cpu_mask_bytes> cpus;
  std::uint64_t cpu_bytes;  // 0: leave the affinity alone
  FileMove* files;
  int file_count;
  std::uint64_t stack;  // address of argc
  std::uint64_t entry;
  EntryStep failed;  // set before the process ends with entry_failed
  int failed_errno;
};

inline constexpr int entry_failed_status = 127;

// Creates the process; returns its ID, or a negative errno.
[[nodiscard]] long start_task(EntryOrder* order);

}  // namespace shima::pvas
