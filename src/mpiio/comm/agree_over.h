// An agreement on errors over a communicator on which nothing of ours exists yet.
#pragma once

#include <mpi.h>

#include "base/result.h"
#include "mpiio/comm/await.h"

namespace shima {

// All ranks' worst; this rank's own words if its error is the worst. Allocates nothing. Collective
// over `comm`.
[[nodiscard]] Status agree_over(MPI_Comm comm, const Status& mine, const char* doing,
                                const Peers& peers = {}) noexcept;

}  // namespace shima
