// Many small pieces, scattered over a file in any order: PFF's list I/O.
//
// The request is processed in portions. The pieces of a portion are sorted by file offset, adjacent
// pieces become runs, and the runs are submitted to the subfiles in that order: writes that lie
// close together through a mapping of the file; others a few hundred per system call through
// io_uring where that is not slower (reads; a buffered write through the ring takes longer),
// otherwise one call each. A second thread shares the reads if only one process has the file open
// and it may use several cores. The order of the pieces matters only if pieces of a write overlap;
// then it is kept.
#pragma once

#include "independent/independent.h"

namespace shima {

// Whether the scattered method is expected to be faster for a request.
[[nodiscard]] bool worth_scattering(const IndependentRequest& request, LogicalFile& file);

// Whether a write is expected to go through a mapping of the file.
[[nodiscard]] bool goes_through_mapping(const IndependentRequest& request, LogicalFile& file);

// For reads, all bytes of the file side must be within the file. Blocks; returns the data bytes
// moved.
[[nodiscard]] Result<std::uint64_t> move_scattered(const IndependentRequest& request,
                                                   LogicalFile& file, Counters& counters);

}  // namespace shima
