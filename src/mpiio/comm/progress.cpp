#include "mpiio/comm/progress.h"

#include <mpi.h>

#include <mutex>
#include <utility>

#include "file/background.h"
#include "mpiio/mpi/private_comm.h"
#include "mpiio/mpi/real_mpi.h"

namespace shima {
namespace {

// The request whose status is queried to make progress in a program of sessions.
struct Asker {
  std::mutex lock;
  int holds = 0;
  MPI_Request request = MPI_REQUEST_NULL;
};

Asker& asker() {
  static auto* instance = new Asker;
  return *instance;
}

int no_status(void*, MPI_Status* status) {
  PMPI_Status_set_elements(status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(status, 0);
  return MPI_SUCCESS;
}
int nothing_to_free(void*) { return MPI_SUCCESS; }
int nothing_to_cancel(void*, int) { return MPI_SUCCESS; }

void progress_without_world() {
  const std::unique_lock hold(asker().lock, std::try_to_lock);
  if (!hold || asker().holds == 0) return;
  if (asker().request == MPI_REQUEST_NULL &&
      PMPI_Grequest_start(no_status, nothing_to_free, nothing_to_cancel, nullptr,
                          &asker().request) != MPI_SUCCESS)
    return;
  int flag = 0;
  SHIMA_REAL(Request_get_status)(asker().request, &flag, MPI_STATUS_IGNORE);
}

// Open MPI makes progress on any communicator. With its fault tolerance, a probe on MPI_COMM_WORLD
// for any source is an error once a rank has failed, which would end the program. MPICH 4.0 answers
// on communicators of one rank from its own queue and makes no progress.
MPI_Comm probed_comm() {
#ifdef OPEN_MPI
  return private_comm();
#else
  return MPI_COMM_WORLD;
#endif
}

}  // namespace

void progress_mpi() {
  if (on_worker_thread()) return;
  if (!has_world()) return progress_without_world();
  int flag = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, probed_comm(), &flag, MPI_STATUS_IGNORE);
}

ProgressHold::ProgressHold(int rank_count) {
  if (rank_count < 2) return;
  const std::lock_guard hold(asker().lock);
  holds_ = true;
  ++asker().holds;
}

ProgressHold::ProgressHold(ProgressHold&& other) noexcept
    : holds_(std::exchange(other.holds_, false)) {}

ProgressHold& ProgressHold::operator=(ProgressHold&& other) noexcept {
  std::swap(holds_, other.holds_);
  return *this;
}

ProgressHold::~ProgressHold() {
  if (!holds_) return;
  const std::lock_guard hold(asker().lock);
  if (--asker().holds != 0 || asker().request == MPI_REQUEST_NULL) return;
  PMPI_Grequest_complete(asker().request);
  SHIMA_REAL(Wait)(&asker().request, MPI_STATUS_IGNORE);
}

}  // namespace shima
