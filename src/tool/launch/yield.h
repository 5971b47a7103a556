// Ranks that wait let others have the core.
#pragma once

namespace shima::tool {

// Sets Open MPI's mpi_yield_when_idle for this rank, if its node has more ranks than cores and the
// user has not set it. Call before the program starts.
void yield_if_cores_are_few();

}  // namespace shima::tool
