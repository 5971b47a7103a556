// Which features of the kernel and the processor that Shima can use work on this machine, for this
// user.
#pragma once

#include <string>
#include <vector>

namespace shima::tool {

struct KernelFeature {
  std::string name;
  bool usable = false;
  std::string detail;       // how it was tried, or why it failed
  std::string consequence;  // for Shima
};

// Tries each one.
[[nodiscard]] std::vector<KernelFeature> try_kernel_features();

}  // namespace shima::tool
