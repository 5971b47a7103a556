// Initializes MPI at a thread level that lets our threads call it (see thread_level.h).
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "base/process/launcher.h"
#include "mpiio/entry/entry.h"
#include "mpiio/file/thread_level.h"
#include "mpiio/mpi/private_comm.h"
#include "mpiio/mpi/real_mpi.h"
#include "mpiio/pnetcdf/pnetcdf.h"
#include "observe/board.h"

namespace shima {
namespace {

// The thread level that the program was told, if MPI_Init or MPI_Init_thread initialized MPI.
std::atomic<int>& told_level() {
  static std::atomic<int> level{-1};
  return level;
}

// If all ranks share a node, collective access sends no messages.
bool left_to_the_program() {
  if (launched_on_one_node()) return true;
  const char* wish = std::getenv("SHIMA_THREADS");
  if (wish != nullptr && std::string_view(wish) == "program") return true;
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int len = 0;
  PMPI_Get_library_version(version, &len);
  return std::string_view(version).starts_with("Open MPI v4");
}

bool any_thread_may_call_mpi() {
  int initialized = 0;
  int level = MPI_THREAD_SINGLE;
  PMPI_Initialized(&initialized);
  if (initialized != 0) SHIMA_REAL(Query_thread)(&level);
  return level == MPI_THREAD_MULTIPLE;
}

// Returns the return value of the MPI's own call.
int start(int* argc, char*** argv, int required, int& told) {
  const int wanted =
      left_to_the_program() ? required : std::max<int>(required, MPI_THREAD_MULTIPLE);
  int provided = 0;
  const int code = SHIMA_REAL(Init_thread)(argc, argv, wanted, &provided);
  if (code == MPI_SUCCESS) show_rank();
  notice_pnetcdf();
  told = std::min(required, provided);
  told_level() = told;
  return code;
}

}  // namespace

void show_rank() {
  static const bool shown = [] {
    if (!has_world()) return false;
    int rank = -1;
    int size = -1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    show_board({.kind = BoardKind::mpi, .rank = rank, .tasks = size});
    start_trace(rank, size);
    return true;
  }();
  static_cast<void>(shown);
}

bool may_run_in_background(OpenFile& file) {
  return file.file().on_one_node() || any_thread_may_call_mpi();
}

}  // namespace shima

using namespace shima;

int MPI_Init(int* argc, char*** argv) {
  // A user who raises the level by these variables expects the program to be told that level.
  for (const char* raised : {"OMPI_MPI_THREAD_LEVEL", "MPIR_CVAR_DEFAULT_THREAD_LEVEL"}) {
    if (std::getenv(raised) == nullptr) continue;
    const int code = SHIMA_REAL(Init)(argc, argv);
    if (code == MPI_SUCCESS) show_rank();
    notice_pnetcdf();
    return code;
  }
  int told = 0;
  return start(argc, argv, MPI_THREAD_SINGLE, told);
}
SHIMA_EXPORT(Init);

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return start(argc, argv, required, *provided);
}
SHIMA_EXPORT(Init_thread);

int MPI_Query_thread(int* provided) {
  const int code = SHIMA_REAL(Query_thread)(provided);
  if (code == MPI_SUCCESS && told_level() >= 0) *provided = told_level();
  return code;
}
SHIMA_EXPORT(Query_thread);
