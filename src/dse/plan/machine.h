// The cores of a host, and how near they are to each other.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace shima::dse {

struct Core {
  // What holds the core, from the largest to the smallest: package, NUMA node, shared cache, core.
  std::array<int, 4> place{};
  std::vector<int> cpus;  // as the kernel counts them
  friend bool operator==(const Core&, const Core&) = default;
};

// Cores that are near to each other follow each other.
using Machine = std::vector<Core>;

// "0.0.0.0:0,4 0.0.0.1:1,5": for messages.
[[nodiscard]] std::string describe(const Machine& machine);
[[nodiscard]] Result<Machine> parse_machine(std::string_view text);
// "0,4", as taskset(1) reads it.
[[nodiscard]] std::string describe_cpus(const std::vector<int>& cpus);

}  // namespace shima::dse
