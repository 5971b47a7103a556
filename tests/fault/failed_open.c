// RANKS: 1 4
// An open that fails does so on every rank, with the error class of the cause, and leaves no file
// or descriptor.
#include <sys/fsuid.h>
#include <sys/resource.h>

#include "mpi_check.h"

enum { nobody = 65534 };

static const int new_file = MPI_MODE_RDWR | MPI_MODE_CREATE;

static void expect(int class, const char* path, int amode, int line) {
  MPI_File file = MPI_FILE_NULL;
  const int found = class_of(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file));
  if (found != class)
    fprintf(stderr, "rank %d: %s: class %d instead of %d\n", here, path, found, class);
  if (found != class || file != MPI_FILE_NULL) give_up("wrong outcome of an open", line);
}

static void works(const char* path, int amode) {
  MPI_File file;
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file));
  CHECK(MPI_File_close(&file));
}

static void make_files(void) {
  if (here == 0) {
    REQUIRE(mkdir("directory", 0755) == 0 && mkdir("locked", 0700) == 0);
    REQUIRE(close(open("there", O_CREAT | O_WRONLY, 0644)) == 0);
    REQUIRE(close(open("unwritable", O_CREAT | O_WRONLY, 0444)) == 0);
    REQUIRE(close(open("locked/file", O_CREAT | O_WRONLY, 0644)) == 0);
    if (getuid() != 0) REQUIRE(chmod("locked", 0) == 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void wrong_names(void) {
  static char long_name[300];
  memset(long_name, 'x', sizeof long_name - 1);
  expect(MPI_ERR_NO_SUCH_FILE, "missing", MPI_MODE_RDONLY, __LINE__);
  expect(MPI_ERR_NO_SUCH_FILE, "missing/file", new_file, __LINE__);
  expect(MPI_ERR_BAD_FILE, "directory", MPI_MODE_RDWR, __LINE__);
  expect(MPI_ERR_BAD_FILE, "directory", MPI_MODE_RDONLY, __LINE__);
  expect(MPI_ERR_BAD_FILE, "there/file", new_file, __LINE__);
  expect(MPI_ERR_BAD_FILE, long_name, new_file, __LINE__);
  expect(MPI_ERR_FILE_EXISTS, "there", new_file | MPI_MODE_EXCL, __LINE__);
  if (here == 0) REQUIRE(access("missing", F_OK) != 0);
}

// Root bypasses permission checks, so this thread uses the file system as user nobody meanwhile.
static void without_rights(void) {
  const int root = getuid() == 0;
  if (root) setfsuid(nobody);
  expect(MPI_ERR_ACCESS, "unwritable", MPI_MODE_RDWR, __LINE__);
  expect(MPI_ERR_ACCESS, "unwritable", MPI_MODE_WRONLY, __LINE__);
  expect(MPI_ERR_ACCESS, "locked/file", MPI_MODE_RDONLY, __LINE__);
  works("unwritable", MPI_MODE_RDONLY);
  if (root) setfsuid(0);
}

// One rank has no free descriptor; all others could open the file.
static void one_rank_alone(void) {
  struct rlimit before, none;
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  none = before;
  none.rlim_cur = 0;
  if (here == ranks - 1) setrlimit(RLIMIT_NOFILE, &none);
  expect(MPI_ERR_IO, "there", MPI_MODE_RDWR, __LINE__);
  expect(MPI_ERR_IO, "fresh", new_file | MPI_MODE_EXCL, __LINE__);
  if (here == ranks - 1) setrlimit(RLIMIT_NOFILE, &before);
  MPI_Barrier(MPI_COMM_WORLD);
  if (here == 0) unlink("fresh");
  MPI_Barrier(MPI_COMM_WORLD);
}

static void ranks_disagree(void) {
  if (ranks == 1) return;
  expect(MPI_ERR_NOT_SAME, "there", here == 0 ? MPI_MODE_RDWR : MPI_MODE_RDONLY, __LINE__);
  MPI_File file;  // one rank's mode is invalid in itself
  const int amode = here == 0 ? MPI_MODE_RDONLY | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
  REQUIRE(class_of(MPI_File_open(MPI_COMM_WORLD, "there", amode, MPI_INFO_NULL, &file)) ==
          MPI_ERR_AMODE);
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 60);
  make_files();
  works("there", MPI_MODE_RDWR);
  wrong_names();
  without_rights();
  one_rank_alone();
  ranks_disagree();
  works("there", MPI_MODE_RDWR);
  works("fresh", new_file | MPI_MODE_EXCL);
  if (here == 0) chmod("locked", 0700);
  return end_test();
}
