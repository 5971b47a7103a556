// shima top: shows what the tasks of a job do, now or as recorded.
#pragma once

#include <string>
#include <vector>

#include "tool/common/failure.h"

namespace shima::tool {

struct TopOptions {
  std::string job;  // empty: the only one
  bool once = false;
  bool json = false;
  bool local = false;  // stays although the job has no task here
  std::string record;  // a file; "-": stdout
  std::string replay;
  double interval_s = 1;
  int samples = 0;                 // 0: without limit
  std::vector<std::string> hosts;  // empty: those that the job names
  bool here = false;               // asks no other host
  std::string shell;
};

[[nodiscard]] Outcome<int> run_top(const TopOptions& options);

}  // namespace shima::tool
