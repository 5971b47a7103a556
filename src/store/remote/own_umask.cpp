#include "store/remote/own_umask.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace shima::remote {

// Other threads may create files, so that umask(2), which can only be read by changing it, will
// not do.
mode_t own_umask() {
  constexpr std::string_view key = "Umask:";
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key))
      return static_cast<mode_t>(std::strtoul(line.c_str() + key.size(), nullptr, 8));
  return 0022;
}

}  // namespace shima::remote
