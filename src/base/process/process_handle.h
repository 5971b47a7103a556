// Detects whether another process still runs, also if its ID has been given to a later process.
//
// A handle holds a pidfd. If the kernel provides none (no such call, a seccomp filter, no
// descriptor left), the handle compares the start time in /proc/PID/stat with the recorded one. An
// identity holds only the ID and the start time. A process sends its identity to its peers, and
// uses no descriptor to watch theirs.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/result.h"
#include "base/unique_fd.h"

namespace shima {

// Distinguishes a process from a later one with the same ID; plain data, may be stored in shared
// memory.
struct ProcessIdentity {
  std::int32_t pid = 0;
  std::uint64_t started_ticks = 0;  // since the machine started; 0: not known
  std::uint64_t clock = 0;          // the time namespace in which `started_ticks` was read

  [[nodiscard]] static ProcessIdentity own();
  // The process that has the ID at present; the start time is 0 if /proc does not show it.
  [[nodiscard]] static ProcessIdentity of(pid_t pid);
  // True also for a zombie. False if neither /proc nor a pidfd is available and the ID is in use.
  [[nodiscard]] bool has_ended() const;
};

class ProcessHandle {
 public:
  ProcessHandle() = default;
  // Code::peer_lost if there is no such process.
  [[nodiscard]] static Result<ProcessHandle> of(pid_t pid);
  // Code::peer_lost if the process has ended, also if another has its ID.
  [[nodiscard]] static Result<ProcessHandle> of(const ProcessIdentity& identity);
  // These do not fail: has_ended() is true if the process has ended already.
  [[nodiscard]] static ProcessHandle anyway(const ProcessIdentity& identity);
  [[nodiscard]] static ProcessHandle without_descriptor(const ProcessIdentity& identity);
  [[nodiscard]] bool has_ended() const;
  // The pidfd, for poll and epoll; -1 if the kernel gave none.
  [[nodiscard]] int descriptor() const { return pidfd_.get(); }

 private:
  ProcessIdentity identity_;
  UniqueFd pidfd_;
};

}  // namespace shima
