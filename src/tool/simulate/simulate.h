// `shima simulate`: what planning a collective call costs, and what it sends, with more ranks than
// this machine can run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/meter.h"
#include "tool/common/failure.h"

namespace shima::tool {

// As on the command line.
struct SimulateOptions {
  std::string ranks = "512,4096,32768,262144,1048576";
  int ranks_per_node = 128;
  int cores_per_node = 0;  // 0: as many as ranks
  std::string placement = "blocks";
  std::string pattern = "columns";
  std::string bytes_per_rank = "1M";
  std::string piece = "4K";
  int targets = 1;
  std::string unit = "1M";
  std::string direction = "write";
  bool cached = false;
  std::string strategy = "auto";
  int subgroup = 0;
  int agents = 0;
  std::string window = "0";
  std::string machine_file;
  std::vector<std::string> machine_values;  // NAME=VALUE
  int samples = 6;
  std::uint64_t seed = 1;
  std::string json_file;  // "-": the standard output
  std::string html_file;
  bool check = false;
};

inline constexpr int exit_limit_missed = 1;  // with `check`

[[nodiscard]] Outcome<int> simulate_calls(const SimulateOptions& options,
                                          simulate::CountAllocations count);

}  // namespace shima::tool
