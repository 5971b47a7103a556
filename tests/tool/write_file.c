// RANKS: none
// (compiled by striped_job.sh) Each rank writes its own 100000 bytes, in rank order, to the file
// named by the argument.
#include "mpi_check.h"

enum { len = 100000 };

int main(int argc, char** argv) {
  static char bytes[len];
  MPI_File file;
  start_test(&argc, &argv, 60);
  memset(bytes, 'a' + here, len);
  CHECK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                      &file));
  CHECK(
      MPI_File_write_at_all(file, (MPI_Offset)here * len, bytes, len, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(MPI_File_close(&file));
  MPI_Finalize();
  return 0;
}
