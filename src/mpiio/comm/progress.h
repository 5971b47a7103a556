// Keeps the messages of the MPI library moving while a rank sleeps in a wait of ours.
//
// In a program with MPI_COMM_WORLD, progress is a probe there. A program that knows sessions only
// has no such communicator. It asks for the status of a generalized request that does not complete,
// which has the MPI look at all its messages. The request is started by the first wait without
// MPI_COMM_WORLD, which may come after MPI_Finalize where a session is left, and ended with the
// last file that several ranks share: it must not outlive the program's session, and a session of
// our own would keep the MPI alive on some ranks when the program starts it anew on all.
#pragma once

namespace shima {

// Looks at the messages once. In a worker's thread it does nothing: the program's own thread takes
// care of its messages.
void progress_mpi();

// While one exists, progress_mpi() works also without MPI_COMM_WORLD.
class ProgressHold {
 public:
  ProgressHold() = default;  // holds nothing
  // Holds nothing either for a single rank: it waits for nobody, and MPICH 4.0 crashes if it is
  // asked for progress before its network is up.
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
