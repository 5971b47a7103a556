// Starts a daemon on each host: directly, by ssh, or by the launcher of Slurm or PRRTE.
//
// The daemon's introduction goes to its standard input. What it writes goes to the standard error
// of this process.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "dse/plan/hosts_file.h"
#include "net/wire.h"
#include "tool/common/failure.h"
#include "tool/dse/dse_command.h"

namespace shima::tool {

// A process that starts daemons.
struct Starter {
  pid_t process = 0;
  std::string name;        // "ssh"
  std::vector<int> hosts;  // of which daemon it starts
};

// Processes are created by the calling thread; they get SIGTERM when it ends.
[[nodiscard]] Outcome<std::vector<Starter>> start_daemons(const std::vector<dse::Host>& hosts,
                                                          const DseOptions& options,
                                                          const ServiceAddress& place);

}  // namespace shima::tool
