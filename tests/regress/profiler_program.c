/* Calls for a profiler to record: start, requests of messages and of a file, collective access.
 * RANKS: none */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank, size, sent = 7, got = 0, flag = 0, failed = 0;
  char bytes[100], back[100];
  MPI_Request requests[2], request;
  MPI_File file;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Isend(&sent, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&got, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 100; ++i) bytes[i] = (char)(i + rank);
  failed |=
      MPI_File_open(MPI_COMM_WORLD, "data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  failed |= MPI_File_write_at_all(file, 200 * rank, bytes, 100, MPI_BYTE, MPI_STATUS_IGNORE);
  failed |= MPI_File_iwrite_at(file, 200 * rank + 100, bytes, 100, MPI_BYTE, &request);
  failed |= MPI_Wait(&request, MPI_STATUS_IGNORE);
  failed |= MPI_File_iread_at(file, 200 * rank + 100, back, 100, MPI_BYTE, &request);
  while (!flag) failed |= MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  for (int i = 0; i < 100; ++i) failed |= back[i] != bytes[i];
  failed |= MPI_File_close(&file);
  MPI_Finalize();
  if (failed || got != 7) fprintf(stderr, "rank %d: wrong data or an error\n", rank);
  return failed || got != 7;
}
