// The MPIs that can be found on this machine without a program that uses one.
#pragma once

#include <vector>

#include "tool/launch/mpiexec.h"

namespace shima::tool {

struct InstalledMpi {
  Mpiexec mpiexec;
  UsedMpi mpi;  // the library beside the launcher; no build where none was found
};

[[nodiscard]] std::vector<InstalledMpi> find_installed_mpis();

}  // namespace shima::tool
