// A communicator of this process alone, for MPI queries that may fail.
#pragma once

#include <mpi.h>

namespace shima {

// Returns errors instead of aborting. Created on first use, by local calls only.
[[nodiscard]] MPI_Comm private_comm();

// Whether MPI_COMM_WORLD can be used: a program may use sessions only.
[[nodiscard]] bool has_world();

}  // namespace shima
