/*
 * RANKS: none
 *
 * A rank for ranks.sh.  "follow": each rank reads the next one's memory by its address, which only
 * tasks of one space can.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static int rank, size;

static int count_tasks(void) {
  int one = getauxval(0x53505641) != 0, all = 0;
  MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

static int follow(void) {
  if (count_tasks() != size) {
    if (rank == 0) printf("%d of %d ranks are tasks\n", 0, size);
    return 0;
  }
  int* mine = malloc(sizeof *mine);
  *mine = rank + 1000;
  int* next = NULL;
  MPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, (rank + size - 1) % size, 0, &next, sizeof next,
               MPI_BYTE, (rank + 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  const int fine = *next == (rank + 1) % size + 1000;
  MPI_Barrier(MPI_COMM_WORLD); /* before anybody's memory goes */
  if (rank == 0) printf("all %d ranks are tasks of one space\n", size);
  return fine ? 0 : 1;
}

static void read_line(void) {
  char line[100] = "";
  if (rank == 0 && fgets(line, sizeof line, stdin)) printf("stdin: %s", line);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* what = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? atoi(argv[2]) : 0;
  int status = 0;
  if (!strcmp(what, "follow")) status = follow();
  if (!strcmp(what, "read")) read_line();
  if (!strcmp(what, "abort") && rank == 0) MPI_Abort(MPI_COMM_WORLD, 3);
  if (!strcmp(what, "crash") && rank == 0) *(volatile int*)0 = 1;
  if (!strcmp(what, "sleep")) {
    printf("rank %d of %d is process %d\n", rank, size, getpid());
    fflush(stdout);
    sleep((unsigned)number);
  }
  MPI_Finalize();
  return strcmp(what, "exit") ? status : number;
}
