// Which thread may call MPI.
//
// Nonblocking calls are carried out by threads of ours. On one node these call no MPI; collective
// access over several nodes sends messages. Whether a job spans nodes is not known when it starts,
// so the MPI is started at MPI_THREAD_MULTIPLE whatever the program asks for, and the program is
// told what it would have been told. SHIMA_THREADS=program leaves the level to the program, and so
// does Open MPI 4, whose one-sided communication over TCP refuses to work at that level; there,
// nonblocking collective calls over several nodes are carried out at once instead.
#pragma once

#include "mpiio/file/open_file.h"

namespace shima {

// Whether threads of ours may carry out collective calls on this file.
[[nodiscard]] bool may_run_in_background(OpenFile& file);

}  // namespace shima
