/* The program that tests of the command start: a rank that prints its environment, then acts.
 * RANKS: none */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Prints the name of Shima's library in this process's memory, if it is loaded. */
static void print_preloaded(int rank) {
  char line[4096], *name;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps))
    if ((name = strstr(line, "libshima-")) && !strstr(name, "audit") && !strstr(name, "fortran")) {
      printf("rank %d has %s", rank, name);
      break;
    }
  fclose(maps);
}

static void obey(const char* order, const char* argument, int rank) {
  char line[100];
  if (!strcmp(order, "read") && rank == 0 && fgets(line, sizeof line, stdin))
    printf("stdin: %s", line);
  if (!strcmp(order, "getenv"))
    printf("%s=%s\n", argument, getenv(argument) ? getenv(argument) : "");
  fflush(stdout);
  if (!strcmp(order, "sleep")) sleep((unsigned)atoi(argument));
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  printf("rank %d of %d\n", rank, size);
  print_preloaded(rank);
  if (argc > 2) obey(argv[1], argv[2], rank);
  MPI_Finalize();
  return argc > 2 && !strcmp(argv[1], "exit") ? atoi(argv[2]) : 0;
}
