// RANKS: 1 2
// What a file's error handler leaves in its argument is what the call that failed returns.
//
// A program may translate errors in its handler ("the error code to be returned", MPI-4.1 section
// 9.3). The calls returned the first code.
#include "mpi_check.h"

static int received = MPI_SUCCESS;

static void replace(MPI_File* file, int* code, ...) {
  (void)file;
  received = class_of(*code);
  *code = MPI_ERR_OTHER;
}

static void read_beyond(MPI_File file) {
  char byte;
  REQUIRE(MPI_File_read_at(file, -1, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
  REQUIRE(received == MPI_ERR_ARG);
}

int main(int argc, char** argv) {
  MPI_Errhandler handler;
  MPI_File file;
  start_test(&argc, &argv, 60);
  CHECK(MPI_File_create_errhandler(replace, &handler));
  CHECK(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
  REQUIRE(MPI_File_open(MPI_COMM_WORLD, "absent", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) ==
          MPI_ERR_OTHER);
  REQUIRE(received == MPI_ERR_NO_SUCH_FILE);
  CHECK(
      MPI_File_open(MPI_COMM_WORLD, "file", MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
  read_beyond(file);
  CHECK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
  CHECK(MPI_Errhandler_free(&handler));
  CHECK(MPI_File_close(&file));
  return end_test();
}
