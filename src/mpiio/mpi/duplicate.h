// A duplicate of a communicator, for messages that no program sees.
#pragma once

#include <mpi.h>

#include "base/result.h"
#include "mpiio/mpi/await.h"

namespace shima {

// The duplicate returns errors. Collective over `comm`; the errors of the ranks may differ.
[[nodiscard]] Result<MPI_Comm> duplicate(MPI_Comm comm, const Peers& peers);

}  // namespace shima
