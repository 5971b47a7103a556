// Decides which threads may call MPI.
//
// Nonblocking calls are executed by threads of ours, or by the thread that waits for them. On one
// node these call no MPI; collective access over several nodes sends messages. So MPI is
// initialized at MPI_THREAD_MULTIPLE, unless the launcher's environment tells that all ranks share
// a node, and the program is told the level that it would have got. The level is also left to the
// program by SHIMA_THREADS=program, and on Open MPI 4, whose one-sided communication over TCP
// refuses to work at MPI_THREAD_MULTIPLE. If the level was left to the program and a file spans
// several nodes nevertheless (a later spawn), nonblocking collective calls run at once, in the
// program's thread.
#pragma once

#include "mpiio/file/open_file.h"

namespace shima {

// Whether threads of ours may carry out collective calls on this file.
[[nodiscard]] bool may_run_in_background(OpenFile& file);

}  // namespace shima
