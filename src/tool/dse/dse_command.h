// `shima dse run`: starts tasks on hosts and stays with them until all have ended.
#pragma once

#include <string>
#include <vector>

#include "tool/common/failure.h"
#include "tool/common/process.h"

namespace shima::tool {

struct DseOptions {
  std::string hosts_file;
  int tasks = 0;         // 0: as many as the topology has, else 1
  std::string topology;  // empty: a ring
  std::string input = "0";
  std::string bind = "none";
  std::string launcher = "auto";
  std::string ssh;  // empty: SHIMA_DSE_SSH, else ssh
  bool tag = false;
  bool show = false;
  bool verbose = false;
  bool survive = false;
  Command program;
};

// The exit code of the first task that has failed.
[[nodiscard]] Outcome<int> run_dse(const DseOptions& options);

}  // namespace shima::tool
