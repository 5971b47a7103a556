// Many small pieces that lie apart in a file, in any order: PFF's list I/O.
//
// The request is taken in portions. The pieces of a portion are sorted by where they lie, those
// that touch become runs, and the runs go to the disks that hold them in that order: with a few
// hundred a system call where that is not slower (reads, whose pages the ring copies as a call of
// one's own would; a buffered write through it takes longer), else with a call each. Reads are
// shared with a second thread where the file is one process's and it may use several cores. The
// order of the pieces decides only where two of a write share bytes; then it is kept.
#pragma once

#include "independent/independent.h"

namespace shima {

// Whether a request is of that kind.
[[nodiscard]] bool worth_scattering(const IndependentRequest& request, LogicalFile& file);

// All bytes of the file side lie within the file (reads). Blocks; returns the data bytes moved.
[[nodiscard]] Result<std::uint64_t> move_scattered(const IndependentRequest& request,
                                                   LogicalFile& file, Counters& counters);

}  // namespace shima
