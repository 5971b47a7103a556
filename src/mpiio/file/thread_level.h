// Which thread may call MPI.
//
// Nonblocking calls are carried out by threads of ours. On one node these call no MPI; collective
// access over several nodes sends messages. So the MPI is started at MPI_THREAD_MULTIPLE, unless
// the launcher's environment says that all ranks share a node, and the program is told what it
// would have been told. The level is left to the program also by SHIMA_THREADS=program and on Open
// MPI 4, whose one-sided communication over TCP refuses to work at MPI_THREAD_MULTIPLE. Where it
// was left to the program and a file spans several nodes all the same (a later spawn), nonblocking
// collective calls are carried out at once.
#pragma once

#include "mpiio/file/open_file.h"

namespace shima {

// Whether threads of ours may carry out collective calls on this file.
[[nodiscard]] bool may_run_in_background(OpenFile& file);

}  // namespace shima
