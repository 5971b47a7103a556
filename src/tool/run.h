// Starting programs under Shima: a whole job, or one process inside a job.
#pragma once

#include <string>
#include <vector>

#include "tool/common/failure.h"
#include "tool/common/process.h"

namespace shima::tool {

// Options of both `shima run` and `shima exec`.
struct ProcessOptions {
  std::string mpi;                 // a build's name or a libmpi's path; empty: detect it
  std::vector<std::string> hints;  // key=value
  std::string stripe;              // see stripe_options.h
  std::vector<std::string> paths;  // directory=place, see SHIMA_PATHS
  std::string log_level;
  bool one_space = false;
  bool whole_job = false;  // all ranks of the job are started in this way
  bool spawned = false;    // MPI_Comm_spawn starts this process
  Command program;
};

struct JobOptions {
  ProcessOptions process;
  int ranks = 0;  // 0: not given
  bool stats = false;
  std::string trace;      // the file for a Chrome trace; empty: none
  std::string html;       // the file for a page about the trace; empty: none
  bool lapi = false;      // LAPI tasks instead of MPI ranks
  std::string transport;  // of LAPI tasks on different hosts
  std::string mpiexec;
  std::vector<std::string> mpiexec_arguments;

  [[nodiscard]] bool is_traced() const { return !trace.empty() || !html.empty(); }
};

// `shima run`: becomes the launcher, or with stats waits for it; the value is the exit code.
[[nodiscard]] Outcome<int> run_job(const JobOptions& options);

// `shima exec`: becomes the program; returns only a failure.
[[nodiscard]] Outcome<int> exec_process(const ProcessOptions& options);

}  // namespace shima::tool
