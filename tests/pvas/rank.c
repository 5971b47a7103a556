/*
 * RANKS: none
 *
 * A rank for ranks.sh and launchers.sh.  "follow": each rank reads the next one's memory by its
 * address, which only tasks of one space can.
 */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
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
  MPI_Barrier(MPI_COMM_WORLD); /* before the memory of any task is unmapped */
  if (rank == 0) printf("all %d ranks are tasks of one space\n", size);
  return fine ? 0 : 1;
}

static void read_line(void) {
  char line[100] = "";
  if (rank == 0 && fgets(line, sizeof line, stdin)) printf("stdin: %s", line);
}

static void copy_input(long left) {
  char buffer[1000];
  while (rank == 0 && left > 0) {
    const size_t got = fread(buffer, 1, left < 1000 ? (size_t)left : sizeof buffer, stdin);
    if (got == 0) break;
    fwrite(buffer, 1, got, stdout);
    left -= (long)got;
  }
}

static int seen = -1;
static volatile sig_atomic_t over;

/* A signal prints the first character of INT, TERM or USR1; the last of these ends the program. */
static void note(int number) {
  const char* letter = number == SIGINT ? "I" : number == SIGTERM ? "T" : "U";
  if (write(seen, letter, 1) < 0 || number == SIGUSR1) over = 1;
}

static void catch_signals(void) {
  char name[20];
  snprintf(name, sizeof name, "seen.%d", rank);
  seen = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0600);
  const int numbers[] = {SIGINT, SIGTERM, SIGUSR1};
  for (int i = 0; i < 3; i++) signal(numbers[i], note);
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
  if (!strcmp(what, "copy")) copy_input(number);
  if (!strcmp(what, "exit-one") && rank == 1) status = number;
  if (!strcmp(what, "abort") && rank == 0) MPI_Abort(MPI_COMM_WORLD, 3);
  if (!strcmp(what, "crash") && rank == 0) *(volatile int*)0 = 1;
  if (!strcmp(what, "catch")) catch_signals();
  if (!strcmp(what, "sleep") || !strcmp(what, "catch")) {
    printf("rank %d of %d is process %d\n", rank, size, getpid());
    fflush(stdout);
    for (int second = 0; second < number && !over; second++) sleep(1);
  }
  MPI_Finalize();
  return strcmp(what, "exit") ? status : number;
}
