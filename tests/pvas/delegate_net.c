/*
 * RANKS: none
 *
 * A rank for delegate_net.sh: it serves as many requesters as it starts, tasks of its space that
 * run another program (delegate_net_task.c).
 *
 *   delegate_net TASK MEMBERS WHAT...       "kill": the first requester is killed
 */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "shima/delegate_mpi.h"

static int rank, ranks, members;
static pvas_space* space;

static void must(int fine, const char* what) {
  if (fine) return;
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, pvas_error_message());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int start(char** argv, int index) {
  char texts[4][20];
  const int numbers[4] = {rank, ranks, members, index};
  char* arguments[20] = {argv[1]};
  for (int i = 0; i < 4; i++) {
    snprintf(texts[i], sizeof texts[i], "%d", numbers[i]);
    arguments[1 + i] = texts[i];
  }
  for (int i = 3; argv[i] && i < 15; i++) arguments[2 + i] = argv[i];
  int task = -1;
  must(pvas_spawn(space, &(pvas_program){.file = argv[1], .arguments = arguments}, &task) == 0,
       "starting a requester");
  return task;
}

static delegate_mpi* prepare(delegate_desk** desk, int with_puts, MPI_File* file) {
  delegate_mpi* net = NULL;
  char name[20];
  snprintf(name, sizeof name, "net %d", rank);
  must(delegate_open(name, NULL, desk) == 0, "opening a desk");
  if (ranks > 1) {
    const delegate_mpi_options uneven = {.members = rank};
    must(delegate_mpi_open(*desk, MPI_COMM_WORLD, &uneven, &net) == PVAS_ERR_ARGUMENT, "uneven");
    /* What one rank fails at alone is an error of all. */
    const delegate_mpi_options too_many = {.members = rank == 0 ? INT_MAX : 1};
    must(delegate_mpi_open(*desk, MPI_COMM_WORLD, &too_many, &net) == PVAS_ERR_NO_MEMORY,
         "one rank without memory");
    must(delegate_mpi_open(rank == 0 ? NULL : *desk, MPI_COMM_WORLD, NULL, &net) ==
             PVAS_ERR_ARGUMENT,
         "one rank without a desk");
    const delegate_mpi_options some_put = {.members = 1, .puts = rank == 0};
    must(delegate_mpi_open(*desk, MPI_COMM_WORLD, &some_put, &net) == PVAS_ERR_ARGUMENT,
         "puts on one rank");
  }
  const delegate_mpi_options options = {.members = members, .puts = with_puts};
  must(delegate_mpi_open(*desk, MPI_COMM_WORLD, &options, &net) == 0, "serving MPI");
  must(MPI_File_open(MPI_COMM_WORLD, "all.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                     file) == MPI_SUCCESS,
       "opening a file");
  must(delegate_mpi_file(net, *file) == 0, "a file's number");
  return net;
}

/* The number of requesters that did not end as expected. */
static int wait_for_all(const int* tasks, int with_kill) {
  int wrong = 0;
  for (int i = 0; i < members; i++) {
    int status = -1;
    must(pvas_wait(space, tasks[i], -1, &status) == 0, "waiting for a requester");
    if (with_kill && i == 0 ? WIFSIGNALED(status) : status == 0) continue;
    fprintf(stderr, "rank %d: requester %d: status %x\n", rank, i, status);
    wrong++;
  }
  return wrong;
}

int main(int argc, char** argv) {
  delegate_desk* desk = NULL;
  MPI_File file;
  int tasks[64];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  members = atoi(argv[2]);
  delegate_mpi* const net = prepare(&desk, strcmp(argv[3], "put") == 0, &file);
  must(pvas_own(&space) == 0, "the rank's space");
  for (int i = 0; i < members; i++) tasks[i] = start(argv, i);
  must(delegate_mpi_serve(net) == 0, "serving");
  const int wrong = wait_for_all(tasks, strcmp(argv[3], "kill") == 0 && rank == 0);
  MPI_File_close(&file);
  delegate_mpi_close(net);
  delegate_close(desk);
  pvas_destroy(space);
  MPI_Finalize();
  return wrong > 0;
}
