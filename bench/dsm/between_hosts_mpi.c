// between_hosts_mpi: see between_hosts.h; by MPI_Put and MPI_Get with flushes.
#define _POSIX_C_SOURCE 200112L
#include <mpi.h>

#include "between_hosts.h"

static MPI_Win window;

static void put(int slot, const long long* value) {
  MPI_Put(value, sizeof *value, MPI_BYTE, 1, slot * (MPI_Aint)sizeof *value, sizeof *value,
          MPI_BYTE, window);
}

static void finish(void) { MPI_Win_flush(1, window); }

static void get(int slot, long long* value) {
  MPI_Get(value, sizeof *value, MPI_BYTE, 1, slot * (MPI_Aint)sizeof *value, sizeof *value,
          MPI_BYTE, window);
  MPI_Win_flush(1, window);
}

static void meet(void) {
  MPI_Win_sync(window);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  struct between way = {0, put, finish, get, meet, NULL};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &way.task);
  MPI_Win_allocate(slots * (MPI_Aint)sizeof(long long), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &way.own,
                   &window);
  MPI_Win_lock_all(0, window);
  int status = measure_between(&way, argc, argv);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  MPI_Finalize();
  return status;
}
