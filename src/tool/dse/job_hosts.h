// The hosts of a job: those of a hosts file, of a Slurm allocation, or this one alone.
#pragma once

#include <string>
#include <vector>

#include "dse/plan/hosts_file.h"
#include "tool/common/failure.h"
#include "tool/dse/dse_command.h"

namespace shima::tool {

struct JobHosts {
  std::vector<dse::Host> hosts;
  bool is_alone = false;  // this host, with as many slots as are wanted
};
[[nodiscard]] Outcome<JobHosts> find_hosts(const DseOptions& options);

// Whether a name means this host.
[[nodiscard]] bool is_this_host(const std::string& name);

// Whether this process runs in an allocation of Slurm, with srun at hand.
[[nodiscard]] bool is_in_slurm();

}  // namespace shima::tool
