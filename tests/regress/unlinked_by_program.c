/* A program that removes its old output by unlink(2) or remove(3) before it creates it anew removes
 * a striped file's subfiles with it. Before, only the master file went, and the subfiles stayed for
 * ever.
 *
 * RANKS: 1 2
 * VARIANTS: striped
 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpi_check.h"

enum { bytes = 20000, steps = 3 };

static const char name[] = "out/data";

static int files_left(void) {
  int count = -1;
  FILE* found = popen("find out -type f ! -name .lock ! -name .shima-target | wc -l", "r");
  REQUIRE(found != NULL && fscanf(found, "%d", &count) == 1 && pclose(found) == 0);
  return count;
}

static void write_file(void) {
  static char data[bytes];
  MPI_File file;
  CHECK(
      MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
  CHECK(MPI_File_write_at_all(file, (MPI_Offset)here * bytes, data, bytes, MPI_BYTE,
                              MPI_STATUS_IGNORE));
  CHECK(MPI_File_close(&file));
}

static void expect_size(MPI_Offset expected) {
  MPI_File file;
  MPI_Offset size = -1;
  CHECK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  CHECK(MPI_File_get_size(file, &size));
  REQUIRE(size == expected);
  CHECK(MPI_File_close(&file));
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 60);
  if (here == 0) REQUIRE(mkdir("out", 0755) == 0);
  for (int step = 0; step < steps; ++step) {
    MPI_Barrier(MPI_COMM_WORLD);
    write_file();
    MPI_Barrier(MPI_COMM_WORLD);
    /* All ranks remove it: one does, the others find it gone. */
    if (step == steps - 1) {
      REQUIRE(unlink(name) == 0 || errno == ENOENT);
      MPI_Barrier(MPI_COMM_WORLD);
      REQUIRE(files_left() == 0);
      continue;
    }
    if (here != 0) continue;
    /* A link to the file is not the file. */
    REQUIRE(symlink("data", "out/link") == 0 && unlink("out/link") == 0);
    expect_size((MPI_Offset)ranks * bytes);
    /* Another name of the file keeps it. */
    REQUIRE(link(name, "out/second") == 0 && unlink("out/second") == 0);
    expect_size((MPI_Offset)ranks * bytes);
    REQUIRE((step % 2 == 0 ? unlink(name) : remove(name)) == 0);
    REQUIRE(files_left() == 0);
    REQUIRE(unlink(name) == -1 && errno == ENOENT);
    REQUIRE(remove(name) == -1 && errno == ENOENT);
  }
  if (here == 0) REQUIRE(remove("out") == 0 || errno == ENOTEMPTY);
  return end_test();
}
