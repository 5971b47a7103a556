// Checks that all members of a communicator run under Shima, before their first meeting.
//
// A member that does not run under Shima is inside its own MPI's open and never answers. So the
// ranks meet along a tree (group/member_tree.h): each sends one mark directly to the one above it
// when all below it have come, and awaits the mark that all have. If a rank is missing, those that
// wait look for processes of the same job and node that do not run under Shima: then the open
// fails. If the rank is found to run under Shima, it is only late. Otherwise there is a timeout. A
// rank that gives up tells the others in what is left of the way, also those that arrive later: so
// all go along the tree twice. A rank that waits for others than those who know, and on another
// node than the rank without Shima, hears of it only after the timeout.
#pragma once

#include <mpi.h>

#include "base/result.h"

namespace shima {

// An error if a member of `comm` does not run under Shima or did not arrive in time. Returns at
// once if the launcher started all members under Shima. Collective over `comm`.
[[nodiscard]] Status check_attendance(MPI_Comm comm);

}  // namespace shima
