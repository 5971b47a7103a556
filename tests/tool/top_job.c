/* Accesses files in known ways, and waits at known places for a file to appear: argv[1] is the
 * directory of those files. Prints nothing.
 *   1. all ranks: 3 independent write_at of 1000 bytes, 2 write_at_all of 5000, 1 read_at of 700,
 *      1 iwrite_at of 70000, which a thread does, a sync
 *   2. waits for "go-1": rank 1 computes, all others wait for it in write_at_all of 64 KiB
 *   3. waits for "go-2", then ends
 */
/* RANKS: none */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wait_for(const char* directory, const char* name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  while (access(path, F_OK) != 0) usleep(10000);
}

static void ready(const char* directory, const char* name, int rank) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.%d", directory, name, rank);
  FILE* file = fopen(path, "w");
  if (file != NULL) fclose(file);
}

int main(int argc, char** argv) {
  static char data[70000];
  const char* directory = argc > 1 ? argv[1] : ".";
  int rank = 0;
  MPI_File file;
  MPI_Request request;
  char path[4096];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  memset(data, rank + 1, sizeof data);
  snprintf(path, sizeof path, "%s/top.data", directory);
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  for (int i = 0; i < 3; ++i)
    MPI_File_write_at(file, rank * 100000 + i * 1000, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE);
  for (int i = 0; i < 2; ++i)
    MPI_File_write_at_all(file, rank * 100000 + 10000 + i * 5000, data, 5000, MPI_BYTE,
                          MPI_STATUS_IGNORE);
  MPI_File_read_at(file, rank * 100000, data, 700, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_iwrite_at(file, 500000 + rank * 100000, data, 70000, MPI_BYTE, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_File_sync(file);
  ready(directory, "ready", rank);
  if (rank == 1 || argc > 2) wait_for(directory, "go-1");
  MPI_File_write_at_all(file, 1000000 + rank * 65536, data, 65536, MPI_BYTE, MPI_STATUS_IGNORE);
  wait_for(directory, "go-2");
  MPI_File_close(&file);
  MPI_Finalize();
  return 0;
}
