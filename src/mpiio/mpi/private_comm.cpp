#include "mpiio/mpi/private_comm.h"

#include <cstdlib>

// Sessions came with MPI-4; Open MPI 5 has them and calls itself MPI-3.1.
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define SHIMA_SESSIONS 1
// Open MPI 4 lacks them under the same soname, and Python resolves all symbols at load time.
#pragma weak PMPI_Session_init
#pragma weak PMPI_Session_finalize
#pragma weak PMPI_Group_from_session_pset
#pragma weak PMPI_Comm_create_from_group
#else
#define SHIMA_SESSIONS 0
#endif

namespace shima {
namespace {

#if SHIMA_SESSIONS
// For a program that has no MPI_COMM_SELF, because it uses sessions only. This session lasts as
// long as the process: the program may end its own session and begin another while handlers and
// datatypes still exist.
MPI_Comm comm_of_own_session() {
  static MPI_Session session{};  // not the null session: Open MPI 4 has no such symbol
  MPI_Group self = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  if (PMPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS) return made;
  PMPI_Group_from_session_pset(session, "mpi://SELF", &self);
  PMPI_Comm_create_from_group(self, "shima", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made);
  PMPI_Group_free(&self);
  // A launcher treats a process that exits without finalizing MPI as crashed.
  std::atexit([] { PMPI_Session_finalize(&session); });
  return made;
}
#endif

}  // namespace

MPI_Comm private_comm() {
  static const MPI_Comm comm = [] {
#if SHIMA_SESSIONS
    if (!has_world()) return comm_of_own_session();
#endif
    MPI_Comm made = MPI_COMM_NULL;
    // A split, unlike a dup, does not copy attributes of other libraries.
    PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &made);
    PMPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    return made;
  }();
  return comm;
}

bool has_world() {
  int initialized = 0;
  int finalized = 0;
  PMPI_Initialized(&initialized);
  PMPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

}  // namespace shima
