// Checks that all members of a communicator run under Shima, before their first meeting.
//
// A member that does not run under Shima is inside its own MPI's open and never answers. So each
// rank sends a mark to every other rank directly, and sees which marks have arrived. The check
// looks up the process of a missing rank of the same job and node: if the process does not run
// under Shima, the open fails; if it does, the rank is only late. For other missing ranks there is
// a timeout. A rank that gives up tells those that arrive later.
#pragma once

#include <mpi.h>

#include "base/result.h"

namespace shima {

// An error if a member of `comm` does not run under Shima or did not arrive in time. Returns at
// once if the launcher started all members under Shima. Collective over `comm`.
[[nodiscard]] Status check_attendance(MPI_Comm comm);

}  // namespace shima
