// An agreement on errors over a communicator that has no channel yet.
#pragma once

#include <mpi.h>

#include "base/result.h"
#include "mpiio/mpi/await.h"

namespace shima {

// The worst status of all ranks, with this rank's own text if its error is the worst. Allocates
// nothing. Collective over `comm`.
[[nodiscard]] Status agree_over(MPI_Comm comm, const Status& mine, const char* doing,
                                const Peers& peers = {}) noexcept;

}  // namespace shima
