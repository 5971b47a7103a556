// dsm_mpi: the same operations by MPI: MPI_Get and MPI_Put with a flush. WRITE flushes locally: the
// data may be reused.
#define _POSIX_C_SOURCE 200112L
#include <mpi.h>

#include "cells.h"

static MPI_Win window;

static void one(enum operation operation, void* data, size_t bytes) {
  if (operation == op_read)
    MPI_Get(data, (int)bytes, MPI_BYTE, 1, 0, (int)bytes, MPI_BYTE, window);
  else
    MPI_Put(data, (int)bytes, MPI_BYTE, 1, 0, (int)bytes, MPI_BYTE, window);
  if (operation == op_write)
    MPI_Win_flush_local(1, window);
  else
    MPI_Win_flush(1, window);
}

static void finish(void) { MPI_Win_flush_all(window); }

int main(int argc, char** argv) {
  int rank;
  void* own;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Win_allocate(most_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
  memset(own, 1, most_bytes);
  MPI_Win_lock_all(0, window);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) measure_cells(one, finish, NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
