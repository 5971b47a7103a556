// The active messages of a job: the handlers' indices and what the messages say.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "dse/packed.h"

namespace shima::dse {

// Handlers of a daemon.
namespace to_daemon {
inline constexpr int start = 1;   // data: StartOrder
inline constexpr int signal = 2;  // number: for all tasks here
inline constexpr int input = 3;   // task; data, none: the end
inline constexpr int taken = 4;   // bytes of output that have been written
inline constexpr int end = 5;     // end all processes, then the daemon
}  // namespace to_daemon

// Handlers of `shima dse run`.
namespace to_run {
inline constexpr int machine = 1;  // number, rank, host name; data: the cores
inline constexpr int started = 2;  // task, process
inline constexpr int failed = 3;   // task, errno; data: why it was not started
inline constexpr int output = 4;   // task, 1 or 2; data, none: the end
inline constexpr int exited = 5;   // task, exit code or -1, signal or 0
inline constexpr int taken = 6;    // task, bytes of input that it has received
}  // namespace to_run

// How much output of a host, and how much input of a task, may be under way.
inline constexpr std::size_t output_window_bytes = std::size_t{256} << 10;
inline constexpr std::size_t input_window_bytes = std::size_t{64} << 10;
inline constexpr std::size_t most_chunk_bytes = std::size_t{16} << 10;

struct TaskOrder {
  int task = 0;
  bool has_input = false;  // else its standard input is empty
  std::vector<int> cpus;   // on which it runs; none: all
};

// Starts tasks on a host.
struct StartOrder {
  int job_tasks = 0;
  std::string meeting;  // SHIMA_LAPI of the tasks; empty: all tasks are on this host
  std::string directory;
  std::vector<std::string> program;
  std::vector<std::string> environment;  // NAME=value
  std::vector<TaskOrder> tasks;
};

[[nodiscard]] std::string pack(const StartOrder& order);
[[nodiscard]] Result<StartOrder> unpack_start(std::string_view data);

}  // namespace shima::dse
