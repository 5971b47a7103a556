// RANKS: 1 2 4
// Opening files on communicators that are duplicated, split and freed in any order.
//
// Shared state of the ranks is attached to a communicator and inherited by its duplicates, because
// HDF5 duplicates the communicator at every open. Collective calls of files on different
// communicators must not mix, a file must outlive its communicator, and thousands of opens must
// leave no descriptor or mapping behind.
#include <dirent.h>

#include "mpi_check.h"

enum { block = 5000, warm_up = 100, cycles = 1500 };

static MPI_File open_on(MPI_Comm comm, const char* name) {
  MPI_File file;
  CHECK(MPI_File_open(comm, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
  return file;
}

// Every rank of `comm` writes a block that identifies file and rank, and reads its neighbour's.
static void use(MPI_File file, MPI_Comm comm, int tag) {
  int rank, size;
  unsigned char mine[block], found[block];
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int next = (rank + 1) % size;
  memset(mine, 16 * tag + rank + 1, block);
  CHECK(MPI_File_write_at_all(file, (MPI_Offset)rank * block, mine, block, MPI_BYTE,
                              MPI_STATUS_IGNORE));
  CHECK(MPI_File_read_at_all(file, (MPI_Offset)next * block, found, block, MPI_BYTE,
                             MPI_STATUS_IGNORE));
  memset(mine, 16 * tag + next + 1, block);
  REQUIRE(memcmp(mine, found, block) == 0);
}

static void duplicates(void) {
  MPI_Comm dup, dup_of_dup, late;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_File a = open_on(dup, "a");
  MPI_Comm_dup(dup, &dup_of_dup);
  MPI_File b = open_on(dup_of_dup, "b");
  MPI_File c = open_on(MPI_COMM_WORLD, "c");
  MPI_Comm_dup(MPI_COMM_WORLD, &late);
  MPI_File d = open_on(late, "d");
  MPI_Comm_free(&dup);  // before the files on it and on its duplicate are closed
  use(b, dup_of_dup, 1);
  use(a, MPI_COMM_WORLD, 2);
  MPI_Comm_free(&dup_of_dup);
  use(d, late, 3);
  use(b, MPI_COMM_WORLD, 4);
  use(c, MPI_COMM_WORLD, 5);
  CHECK(MPI_File_close(&b));
  CHECK(MPI_File_close(&c));
  use(a, MPI_COMM_WORLD, 6);
  CHECK(MPI_File_close(&d));
  CHECK(MPI_File_close(&a));
  MPI_Comm_free(&late);
}

// Halves, and each rank alone, while a file of all is open; ranks use their files in different
// orders.
static void splits(void) {
  MPI_Comm half;
  char half_name[32], own_name[32];
  snprintf(half_name, sizeof half_name, "half.%d", here % 2);
  snprintf(own_name, sizeof own_name, "own.%d", here);
  MPI_Comm_split(MPI_COMM_WORLD, here % 2, -here, &half);
  MPI_File all = open_on(MPI_COMM_WORLD, "all");
  MPI_File part = MPI_FILE_NULL, own = MPI_FILE_NULL;
  if (here % 2 == 0) part = open_on(half, half_name);
  own = open_on(MPI_COMM_SELF, own_name);
  if (here % 2 != 0) part = open_on(half, half_name);
  use(part, half, 1);
  use(own, MPI_COMM_SELF, 2);
  use(all, MPI_COMM_WORLD, 3);
  use(part, half, 4);
  CHECK(MPI_File_close(&part));
  MPI_Comm_free(&half);
  CHECK(MPI_File_close(&all));
  CHECK(MPI_File_close(&own));
}

static int open_descriptors(void) {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory) != NULL) ++count;
  closedir(directory);
  return count;
}

static int mappings(void) {
  int lines = 0, c;
  FILE* maps = fopen("/proc/self/maps", "r");
  while ((c = getc(maps)) != EOF) lines += c == '\n';
  fclose(maps);
  return lines;
}

static void cycle(int count) {
  for (int i = 0; i < count; ++i) {
    MPI_Comm comm = MPI_COMM_WORLD;
    if (i % 3 == 0) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_File file = open_on(comm, "cycle");
    if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
    if (i % 10 == 0) use(file, MPI_COMM_WORLD, i % 7);
    CHECK(MPI_File_close(&file));
  }
}

static void leaves_nothing_behind(void) {
  cycle(warm_up);
  const int descriptors_before = open_descriptors(), mappings_before = mappings();
  cycle(cycles);
  const int more_descriptors = open_descriptors() - descriptors_before,
            more_mappings = mappings() - mappings_before;
  if (more_descriptors > 0 || more_mappings > 20)  // the heap and the MPI may grow a little
    fprintf(stderr, "%d more descriptors, %d more mappings\n", more_descriptors, more_mappings);
  REQUIRE(more_descriptors <= 0 && more_mappings <= 20);
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  duplicates();
  splits();
  leaves_nothing_behind();
  return end_test();
}
