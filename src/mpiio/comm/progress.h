// Keeps the messages of the MPI library moving while a rank sleeps in a wait of ours.
//
// In a program with MPI_COMM_WORLD, progress is a probe. A program that uses sessions only
// has no such communicator. There, progress is a query for the status of a generalized request that
// does not complete, which makes MPI process all its messages. The first wait without
// MPI_COMM_WORLD starts the request, also after MPI_Finalize if a session is left. It ends with the
// last file that several ranks share: it must not outlive the program's session, and a session of
// ours would keep MPI initialized on some ranks when the program starts it again on all.
#pragma once

namespace shima {

// Makes progress once. In a worker's thread it does nothing: the program's own thread makes
// progress for its messages.
void progress_mpi();

// While one exists, progress_mpi() works also without MPI_COMM_WORLD.
class ProgressHold {
 public:
  ProgressHold() = default;  // holds nothing
  // Holds nothing for a single rank either: it waits for no other rank, and MPICH 4.0 crashes if
  // progress is requested before its network is up.
  explicit ProgressHold(int rank_count);
  ProgressHold(ProgressHold&& other) noexcept;
  ProgressHold& operator=(ProgressHold&& other) noexcept;
  ProgressHold(const ProgressHold&) = delete;
  ProgressHold& operator=(const ProgressHold&) = delete;
  ~ProgressHold();

 private:
  bool holds_ = false;
};

}  // namespace shima
