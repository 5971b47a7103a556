// shima iod: serves targets to other machines, or asks such a server.
#pragma once

#include <string>
#include <vector>

#include "tool/common/failure.h"

namespace shima::tool {

struct IodOptions {
  std::string listen;
  std::vector<std::string> targets;      // NAME=DIR
  std::vector<std::string> directories;  // the same
  std::string key_file;                  // the key of the user who runs it
  std::string keys_file;                 // those of other users
  std::string status_of;
};

// Serves until SIGTERM or SIGINT; SIGHUP lets it read the keys again.
[[nodiscard]] Outcome<int> run_iod(const IodOptions& options);

}  // namespace shima::tool
