// Ranks that wait let others have the core.
#pragma once

namespace shima::tool {

// Sets Open MPI's mpi_yield_when_idle in this process's environment, if the node has more ranks
// than cores and the variable is not set. Call before the program starts.
void yield_if_cores_are_few();

}  // namespace shima::tool
