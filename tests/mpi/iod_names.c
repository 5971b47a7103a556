// Names of files in a directory of an I/O node: iod_names.py compiles and starts it.
// RANKS: none
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;
static char path[4096];

static void expect_class(int code, int wanted, const char* what) {
  int found = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &found);
  if (found == wanted) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int len = 0;
  if (code != MPI_SUCCESS) MPI_Error_string(code, text, &len);
  fprintf(stderr, "rank %d: %s: error class %d, not %d: %s\n", rank, what, found, wanted, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void expect(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int open_file(int amode, MPI_Info info, MPI_File* file) {
  return MPI_File_open(MPI_COMM_WORLD, path, amode, info, file);
}

static void check_names(MPI_Info info) {
  MPI_File file;
  MPI_Offset size = -1;
  int number = rank;
  expect_class(open_file(MPI_MODE_RDWR, info, &file), MPI_ERR_NO_SUCH_FILE, "opening no file");
  expect_class(open_file(MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, info, &file), MPI_SUCCESS,
               "creating");
  expect_class(MPI_File_write_at_all(file, rank * (MPI_Offset)sizeof number, &number, 1, MPI_INT,
                                     MPI_STATUS_IGNORE),
               MPI_SUCCESS, "writing");
  expect_class(MPI_File_set_size(file, 1000), MPI_SUCCESS, "setting the size");
  expect_class(MPI_File_close(&file), MPI_SUCCESS, "closing");
  expect_class(open_file(MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, info, &file),
               MPI_ERR_FILE_EXISTS, "creating again");
  expect_class(open_file(MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_SUCCESS, "opening");
  MPI_File_get_size(file, &size);
  expect(size == 1000, "the size that was set");
  number = -1;
  const int other = (rank + 1) % ranks;
  MPI_File_read_at_all(file, other * (MPI_Offset)sizeof number, &number, 1, MPI_INT,
                       MPI_STATUS_IGNORE);
  expect(number == other, "what another rank has written");
  expect_class(MPI_File_write_at(file, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE),
               MPI_ERR_READ_ONLY, "writing to a file opened to read");
  MPI_File_close(&file);
  expect_class(
      open_file(MPI_MODE_WRONLY | MPI_MODE_APPEND | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file),
      MPI_SUCCESS, "appending");
  MPI_File_get_position(file, &size);
  expect(size == 1000, "the position to append at");
  MPI_File_close(&file);
  expect_class(open_file(MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE,
               "opening what was deleted on close");
  expect_class(open_file(MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file), MPI_SUCCESS,
               "creating to delete");
  MPI_File_close(&file);
  if (rank == 0) {
    expect_class(MPI_File_delete(path, MPI_INFO_NULL), MPI_SUCCESS, "deleting");
    expect_class(MPI_File_delete(path, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE, "deleting no file");
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  MPI_Info striped;
  MPI_File file;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Info_create(&striped);
  MPI_Info_set(striped, "striping_factor", "2");
  MPI_Info_set(striped, "striping_unit", "128");
  snprintf(path, sizeof path, "%s/file", argv[1]);
  check_names(MPI_INFO_NULL);
  check_names(striped);
  MPI_Info_set(striped, "shima_targets", "beside");
  check_names(striped);
  snprintf(path, sizeof path, "%s/none/file", argv[1]);
  expect_class(open_file(MPI_MODE_CREATE | MPI_MODE_RDWR, striped, &file), MPI_ERR_NO_SUCH_FILE,
               "a directory that does not exist");
  snprintf(path, sizeof path, "%s/../file", argv[1]);
  expect_class(open_file(MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
               strstr(argv[1], "iod:") ? MPI_ERR_ACCESS : MPI_SUCCESS, "a path that leads out");
  if (strstr(argv[1], "iod:") == NULL) {
    MPI_File_close(&file);
    if (rank == 0) MPI_File_delete(path, MPI_INFO_NULL);
  }
  MPI_Info_free(&striped);
  if (rank == 0) puts("all names are good");
  MPI_Finalize();
  return 0;
}
