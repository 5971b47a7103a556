/* RANKS: none
 *
 * Makes every call of Shima to malloc and to the system fail in an operation, one site after the
 * other (inject_calls_lib.c), and checks the outcome on all ranks.
 *
 *   inject_calls FILE STRIDE OFFSET [OPERATION]
 *
 * For each operation a rank records the sites that it visits; then the operation is repeated with
 * one of them failing: alone, and together with all later allocations. STRIDE and OFFSET choose
 * every STRIDE-th site. After each failure: all ranks return one error class of a collective call,
 * bytes that no rank asked to write are unchanged, bytes are right if all ranks succeed, and the
 * same file and communicator remain usable. A hang ends the job with the place of the failure. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inject_operations.h"
#include "inject_world.h"

enum { FEWEST_FAILURES = 1200, MANY_RUNS = 8 }; /* in all operations, with a stride of 1 */

static void on_alarm(int number) {
  say_where(number == SIGALRM ? "HANG" : "CRASH");
  if (getenv("INJECT_WAIT") != NULL) pause();
  _exit(9);
}

static int class_of(int code) {
  int class = 0;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  return class;
}

/* One run of an operation; `site` 0 records instead. Returns whether the requested call failed. */
static int run(const struct operation* op, uint64_t site, int all_after, int* site_count) {
  int classes[MOST_RANKS], same = 1, good = 1, fired = 0;
  doing = op->name;
  strict = all_after;
  reach = op->reach;
  put_old();
  meet();
  if (op->before != NULL) op->before();
  fill_buffer(op->moves == 'w');
  meet();
  alarm(30);
  if (rank == victim) {
    if (site == 0)
      inject_begin();
    else
      inject_arm(site, 1, all_after);
  }
  const int class = class_of(op->run());
  if (rank == victim) {
    if (site == 0)
      *site_count = inject_end();
    else
      fired = inject_disarm();
  }
  gather(class, classes);
  alarm(0);
  for (int i = 0; i < size; ++i) {
    same = same && classes[i] == classes[0];
    good = good && classes[i] == MPI_SUCCESS;
  }
  if (op->scope == TOGETHER && !same) {
    char text[200] = "ranks do not agree:";
    for (int i = 0; i < size; ++i) sprintf(text + strlen(text), " %d", classes[i]);
    if (rank == victim) complain(text);
  }
  if (op->scope == ALONE && rank != victim && class != MPI_SUCCESS)
    complain("an independent call failed although the failure was injected on another rank");
  if (site == 0 && !good && rank == victim) complain("failed without an injected failure");
  check_file(op->moves == 'w' && good, op->moves == 'w');
  if (op->moves == 'r') check_buffer(class == MPI_SUCCESS);
  meet();
  if (op->after != NULL) op->after();
  file = MPI_FILE_NULL;
  return fired;
}

/* How many runs there were, and in how many of them a call failed. */
struct tally {
  long tried, fired;
};

static void try_all(const struct operation* op, uint64_t stride, uint64_t offset,
                    struct tally* sum) {
  struct tally here = {0, 0};
  int count = 0;
  piece = op->piece;
  striped = op->kind == STRIPED;
  swapped = op->kind == SWAPPED;
  caches_apart = op->kind == APART;
  path = striped ? striped_path : plain_path;
  make_types();
  run(op, 0, 0, &count); /* visits the sites of the first time only */
  run(op, 0, 0, &count);
  count = (int)from_victim((uint64_t)count);
  for (int i = 0; i < count; ++i) {
    const char* name = "";
    int times = 0;
    const uint64_t site = from_victim(rank == victim ? inject_site(i, &name, &times) : 0);
    if (site / 16 % stride != offset % stride) continue;
    site_number = i;
    kind = name;
    for (int all_after = 0; all_after < 2; ++all_after) {
      here.fired += (long)from_victim((uint64_t)run(op, site, all_after, NULL));
      ++here.tried;
    }
  }
  site_number = -1;
  /* A few may be calls of a thread that are not repeated. */
  if (rank == victim && here.tried >= MANY_RUNS && here.fired < here.tried / 2)
    complain("calls that were seen are not repeated, and do not fail");
  sum->tried += here.tried;
  sum->fired += here.fired;
}

static void make_striped_file(void) {
  striped = 1;
  if (rank == 0 && (open_on(MPI_COMM_SELF, striped_path, MPI_MODE_RDWR | MPI_MODE_CREATE, &file) !=
                        MPI_SUCCESS ||
                    MPI_File_close(&file) != MPI_SUCCESS))
    MPI_Abort(MPI_COMM_WORLD, 2);
  meet();
}

#define FIND(name) *(void**)&name = dlsym(RTLD_DEFAULT, #name)

int main(int argc, char** argv) {
  int all[MOST_RANKS];
  struct tally sum_of = {0, 0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  FIND(inject_begin);
  FIND(inject_end);
  FIND(inject_site);
  FIND(inject_arm);
  FIND(inject_disarm);
  FIND(inject_where);
  if (argc < 4 || inject_begin == NULL) {
    fprintf(
        stderr,
        "usage: inject_calls FILE STRIDE OFFSET [OPERATION], with inject_calls_lib preloaded\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  plain_path = argv[1];
  snprintf(striped_path, sizeof striped_path, "%s.striped", plain_path);
  snprintf(temporary, sizeof temporary, "%s.made", plain_path);
  const uint64_t stride = strtoull(argv[2], NULL, 10), offset = strtoull(argv[3], NULL, 10);
  const int deadly[] = {SIGALRM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE};
  for (size_t i = 0; i < sizeof deadly / sizeof *deadly; ++i) signal(deadly[i], on_alarm);
  signal(SIGPIPE, SIG_IGN);
  if (!inject_begin()) {
    fprintf(stderr, "rank %d: MPI_File_open is not Shima's\n", rank);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  inject_end();
  make_striped_file();
  const int victims[2] = {0, size - 1};
  for (size_t i = 0; i < sizeof operations / sizeof *operations; ++i) {
    const struct operation* op = &operations[i];
    if (argc > 4 && strstr(op->name, argv[4]) == NULL) continue;
    for (int v = 0; v < 2; ++v) {
      const struct tally before = sum_of;
      victim = victims[v];
      try_all(op, stride, offset, &sum_of);
      if (rank == 0 && getenv("INJECT_VERBOSE") != NULL)
        fprintf(stderr, "%s, rank %d: %ld failures in %ld runs\n", op->name, victim,
                sum_of.fired - before.fired, sum_of.tried - before.tried);
    }
  }
  gather(failures, all);
  int sum = 0;
  for (int i = 0; i < size; ++i) sum += all[i];
  if (rank == 0)
    printf("%ld injected failures in %ld runs, %d problems\n", sum_of.fired, sum_of.tried, sum);
  /* Fewer mean that the calls are not seen any more. */
  if (argc == 4 && sum_of.fired * (long)stride < FEWEST_FAILURES) {
    if (rank == 0) printf("expected at least %d failures\n", FEWEST_FAILURES / (int)stride);
    sum = 1;
  }
  MPI_Finalize();
  return sum == 0 ? 0 : 1;
}
