// MPI_Pcontrol, by which a program traces only the phase that it wants to see (MPI 5.0, 15.2.4).
//
// The call goes no further: in MPICH and Open MPI it does nothing, and a profiler comes before
// Shima in the symbol search order. If such a one does not call PMPI_Pcontrol, Shima does not see
// the call. A trace that was paused before MPI_Init stays paused, unlike the standard's default, so
// that a program can leave out its first calls.
#include "mpiio/entry/entry.h"
#include "observe/trace_log.h"

using namespace shima;

// Exported before its body, from which GCC would learn that it does not throw and warn that the
// alias does not say so.
SHIMA_EXPORT(Pcontrol);

// Level 2 asks for buffers to be written, of which there are none; the standard defines no other.
int MPI_Pcontrol(const int level, ...) {
  if (level == 0) pause_trace();
  if (level == 1) resume_trace();
  return MPI_SUCCESS;
}
