// RANKS: none
// LAPI and MPI in one process: both communicate in turn, both number the processes alike, and a
// file is written by MPI-IO. With the argument "late", MPI starts after LAPI.
#include <mpi.h>

#include "check.h"

enum { rounds = 200, len = 3000 };
static unsigned char window[len], source[len];
static lapi_cntr_t arrived;

static void write_file(void) {
  MPI_File file;
  char value = (char)('a' + task_id);
  const int opened = MPI_File_open(MPI_COMM_WORLD, "beside.dat", MPI_MODE_CREATE | MPI_MODE_WRONLY,
                                   MPI_INFO_NULL, &file);
  CHECK(opened == MPI_SUCCESS, "open");
  CHECK(MPI_File_write_at_all(file, task_id, &value, 1, MPI_CHAR, MPI_STATUS_IGNORE) == MPI_SUCCESS,
        "write");
  CHECK(MPI_File_close(&file) == MPI_SUCCESS, "close");
}

int main(int argc, char** argv) {
  const int is_late = argc > 1 && strcmp(argv[1], "late") == 0;
  int rank = -1, size = -1;
  if (is_late) begin();
  MPI_Init(&argc, &argv);
  if (!is_late) begin();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(rank == task_id && size == num_tasks, "rank %d of %d, but task %d of %d", rank, size,
        task_id, num_tasks);
  void** windows = calloc((size_t)size, sizeof *windows);
  void** counters = calloc((size_t)size, sizeof *counters);
  OK(LAPI_Address_init(hndl, window, windows));
  OK(LAPI_Address_init(hndl, &arrived, counters));
  const unsigned right = (unsigned)((rank + 1) % size);
  const int left = (rank + size - 1) % size;
  for (int i = 0; i < rounds; ++i) {
    int sum = -1;
    fill(source, len, i + rank);
    OK(LAPI_Put(hndl, right, len, windows[right], source, counters[right], NULL, NULL));
    CHECK(MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS, "allreduce");
    CHECK(sum == i * size, "the sum of round %d is %d", i, sum);
    OK(LAPI_Waitcntr(hndl, &arrived, 1, NULL));
    check_filled(window, len, i + left, "window");
    OK(LAPI_Gfence(hndl));
  }
  write_file();
  if (is_late) MPI_Finalize();
  end();
  if (!is_late) MPI_Finalize();
  printf("task %d is done\n", rank);
  return 0;
}
