// Checks that all members of a communicator run under Shima, before their first meeting.
//
// A member that does not run under Shima is inside its own MPI's open and never answers. So the
// ranks meet in log2(ranks) rounds, in each of which a rank sends one mark to another rank directly
// and awaits one, which tells of twice as many ranks as that of the round before. If a rank is
// missing, those that await a mark that tells of it look for processes of the same job and node
// that do not run under Shima: then the open fails. If the rank is found to run under Shima, it is
// only late. Otherwise there is a timeout. A rank that gives up tells the others, also those that
// arrive later: so all do the rounds twice.
#pragma once

#include <mpi.h>

#include "base/result.h"

namespace shima {

// An error if a member of `comm` does not run under Shima or did not arrive in time. Returns at
// once if the launcher started all members under Shima. Collective over `comm`.
[[nodiscard]] Status check_attendance(MPI_Comm comm);

}  // namespace shima
