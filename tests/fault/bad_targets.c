// RANKS: none
// (compiled by bad_targets.py) Creates a file collectively and writes a block from each rank. Exit
// code 0, or 1 after "class CLASS" on rank 0's standard output.
#include "mpi_check.h"

enum { bytes = 100000 };

int main(int argc, char** argv) {
  static unsigned char block[bytes];
  MPI_File file = MPI_FILE_NULL;
  start_test(&argc, &argv, 60);
  for (int i = 0; i < bytes; ++i) block[i] = value_at((long long)here * bytes + i);
  int code =
      MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  int worst = 0, mine = class_of(code), least = 0;
  MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  REQUIRE(worst == least);
  if (code == MPI_SUCCESS) {
    CHECK(MPI_File_write_at_all(file, (MPI_Offset)here * bytes, block, bytes, MPI_BYTE,
                                MPI_STATUS_IGNORE));
    CHECK(MPI_File_close(&file));
  } else if (here == 0) {
    printf("class %s\n", mine == MPI_ERR_NO_SPACE       ? "no_space"
                         : mine == MPI_ERR_READ_ONLY    ? "read_only"
                         : mine == MPI_ERR_NO_SUCH_FILE ? "no_such_file"
                         : mine == MPI_ERR_ACCESS       ? "access"
                                                        : "other");
  }
  MPI_Finalize();
  return code == MPI_SUCCESS ? 0 : 1;
}
