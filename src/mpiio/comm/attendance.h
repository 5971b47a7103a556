// Whether all members of a communicator run under Shima, found out when they introduce themselves.
//
// A member that does not run under Shima is inside its own MPI's open and never answers. So each
// rank sends its card to every other directly, and sees who has come. A missing rank of the same
// job and node is looked up among the processes: if it is not under Shima, nobody waits for it; if
// it is, it is only late. Others are waited for until a time-out. A rank that gives up tells those
// that come later.
//
// Where the launcher started all ranks of the job under Shima, its own members need no such care:
// one MPI_Iallgather does.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace shima {

// What a rank tells of itself.
struct Introduction {
  std::uint64_t node = 0;
  std::int32_t pid = 0;
};

// Whether `comm` has members only that were started under Shima together with this process. The
// same on all members. Local.
[[nodiscard]] bool all_started_under_shima(MPI_Comm comm);

// The introductions of all, in the order of ranks. Collective over `comm`. An error if somebody is
// not under Shima or did not come in time.
[[nodiscard]] Result<std::vector<Introduction>> meet_all(MPI_Comm comm, const Introduction& mine);

}  // namespace shima
