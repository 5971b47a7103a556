// Finds the MPIs installed on this machine.
#pragma once

#include <vector>

#include "tool/launch/mpiexec.h"

namespace shima::tool {

struct InstalledMpi {
  Mpiexec mpiexec;
  UsedMpi mpi;  // the library beside the launcher; no build if none was found
};

[[nodiscard]] std::vector<InstalledMpi> find_installed_mpis();

}  // namespace shima::tool
