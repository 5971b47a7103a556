// Finds the ranks of a job that run on this node, in /proc.
//
// Launchers give each rank its number and the job's name in the environment, which processes of the
// same user can read in /proc/PID/environ. If the launcher gives the job no name, the job is that
// of the launcher's local server, an ancestor of its ranks. Programs started by MPI_Comm_spawn are
// further jobs of the same launcher. A process runs under Shima if it has mapped a build of Shima
// (/proc/PID/maps).
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>

#include "base/function_ref.h"

namespace shima {

enum class UnderShima {
  unknown,  // no such process here, or it has not loaded an MPI, or it cannot be read
  yes,
  no,
};

struct RankProcess {
  UnderShima under_shima = UnderShima::unknown;
  pid_t pid = 0;  // 0: unknown
};

// The process on this node that is rank `rank` of this process's job.
[[nodiscard]] RankProcess find_rank_process(int rank);

// A rank of this process's job.
struct FoundRank {
  int rank = 0;
  pid_t pid = 0;
};

// A process on this node that is one of some ranks of this process's job and does not run under
// Shima. Adds the ranks that it finds to run under Shima to `under`, and looks at none that is
// there.
[[nodiscard]] std::optional<FoundRank> find_rank_without_shima(FunctionRef<bool(int)> is_wanted,
                                                               std::set<int>& under);

// Whether this node has at least `least` processes of other jobs of the same launcher, which were
// spawned by this job or have spawned it, and all of these that use MPI run under Shima.
[[nodiscard]] bool related_jobs_under_shima(int least);

}  // namespace shima
