// RANKS: 2 4
// A rank that comes late deletes an old file, and opens a new one of this name with all ranks.
//
// Programs do this without a barrier. No rank may open or create the file before the last rank has
// come to MPI_File_open: the ranks would have two files, and one file's data would be lost.
#include "mpi_check.h"

enum { late_us = 50000, rounds = 4 };
static const char name[] = "data";

static void make_old_file(void) {
  FILE* const file = fopen(name, "w");
  REQUIRE(file != NULL);
  fputs("old, and longer than what the ranks write", file);
  REQUIRE(fclose(file) == 0);
}

static void check_new_file(void) {
  long long size = 0;
  unsigned char* const bytes = contents_of(name, &size);
  REQUIRE(size == ranks);
  for (int i = 0; i < ranks; i++) REQUIRE(bytes[i] == value_at(i));
  free(bytes);
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 60);
  for (int round = 0; round < rounds; round++) {
    const int late = round % ranks;
    const unsigned char mine = value_at(here);
    MPI_File file;
    if (here == late) make_old_file();
    MPI_Barrier(MPI_COMM_WORLD);
    if (here == late) {
      usleep(late_us);
      CHECK(MPI_File_delete(name, MPI_INFO_NULL));
    }
    CHECK(
        MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK(MPI_File_write_at(file, here, &mine, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(MPI_File_close(&file));
    if (here == 0) check_new_file();
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return end_test();
}
