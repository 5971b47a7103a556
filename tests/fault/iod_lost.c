// RANKS: none
// Writes and reads a file, collectively or each rank alone, until a call fails; then each rank
// prints the error class and whether all ranks have the same, and ends. A loss that is an error
// once is one until the file is opened again; a failing disk ("disk") may fail later on other
// ranks' calls.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { bytes = 64 << 10 };

int main(int argc, char** argv) {
  int rank, ranks, error = MPI_SUCCESS, again, same;
  static char data[bytes];
  MPI_File file;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int is_collective = argc > 1 && strcmp(argv[1], "collective") == 0;
  if (MPI_File_open(MPI_COMM_WORLD, "lost.data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                    &file) != MPI_SUCCESS)
    MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_Datatype pieces;
  MPI_Type_vector(bytes / 1024, 1024, 1024 * ranks, MPI_BYTE, &pieces);
  MPI_Type_commit(&pieces);
  MPI_File_set_view(file, 1024 * rank, MPI_BYTE, pieces, "native", MPI_INFO_NULL);
  for (long call = 0; error == MPI_SUCCESS; ++call) {
    const int writes = call % 2 == 0;
    if (is_collective)
      error = writes ? MPI_File_write_at_all(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE)
                     : MPI_File_read_at_all(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    else
      error = writes ? MPI_File_write_at(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE)
                     : MPI_File_read_at(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    if (call == 20 && rank == 0) {
      printf("going\n");
      fflush(stdout);
    }
  }
  again = MPI_File_write_at(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
  int class, first;
  MPI_Error_class(error, &class);
  first = class;
  MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
  const int is_loss = argc < 3 || strcmp(argv[2], "disk") != 0;
  same = first == class && (again != MPI_SUCCESS || !is_loss);
  const char* name = class == MPI_ERR_IO         ? "MPI_ERR_IO"
                     : class == MPI_ERR_NO_SPACE ? "MPI_ERR_NO_SPACE"
                                                 : "another class";
  printf("rank %d: %s, %s\n", rank, name, same ? "as all" : "unlike others");
  fflush(stdout);
  MPI_File_close(&file);
  MPI_Type_free(&pieces);
  MPI_Finalize();
  return same ? 0 : 1;
}
