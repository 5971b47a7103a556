// A communicator of this process alone, for asking MPI questions whose answer may be an error.
#pragma once

#include <mpi.h>

namespace shima {

// Returns errors instead of aborting; made at first use, by local calls only.
[[nodiscard]] MPI_Comm private_comm();

// Whether MPI_COMM_WORLD can be used: a program may know sessions only.
[[nodiscard]] bool has_world();

}  // namespace shima
