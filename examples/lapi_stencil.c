/* lapi_stencil: heat in a rod, which is dealt to the tasks in blocks; neighbours put their border
 * cells into each other's memory.
 *
 *   cc lapi_stencil.c -llapi && shima run --lapi -n 4 ./a.out
 *
 * There are two generations of cells. In each step a task puts its borders of the new one into its
 * neighbours' halo cells; after LAPI_Gfence they are there, and all go on. */
#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { cells = 1000, steps = 500 };

static double rod[2][cells + 2]; /* with a halo cell at each end */

static void check(int code) {
  char text[LAPI_MAX_ERR_STRING];
  if (code == LAPI_SUCCESS) return;
  LAPI_Msg_string(code, text);
  fprintf(stderr, "%s\n", text);
  exit(1);
}

int main(void) {
  lapi_handle_t handle;
  lapi_info_t info;
  int task, tasks, i, step;

  memset(&info, 0, sizeof info);
  check(LAPI_Init(&handle, &info));
  check(LAPI_Qenv(handle, TASK_ID, &task));
  check(LAPI_Qenv(handle, NUM_TASKS, &tasks));
  void** rods = calloc((size_t)tasks, sizeof *rods);
  check(LAPI_Address_init(handle, rod, rods));

  if (task == 0) rod[0][0] = rod[1][0] = 100; /* the rod's left end is hot, the right one cold */
  check(LAPI_Gfence(handle));
  for (step = 0; step < steps; step++) {
    double *from = rod[step % 2], *to = rod[1 - step % 2];
    size_t generation = (size_t)(1 - step % 2) * (cells + 2);
    for (i = 1; i <= cells; i++) to[i] = from[i] + 0.4 * (from[i - 1] - 2 * from[i] + from[i + 1]);
    if (task > 0) {
      double* left = (double*)rods[task - 1] + generation + cells + 1;
      check(LAPI_Put(handle, (unsigned)(task - 1), sizeof *to, left, to + 1, NULL, NULL, NULL));
    }
    if (task < tasks - 1) {
      double* right = (double*)rods[task + 1] + generation;
      check(
          LAPI_Put(handle, (unsigned)(task + 1), sizeof *to, right, to + cells, NULL, NULL, NULL));
    }
    check(LAPI_Gfence(handle));
  }
  if (task == 0) printf("cells 1, 10, 20: %.6f %.6f %.6f\n", rod[0][1], rod[0][10], rod[0][20]);
  check(LAPI_Term(handle));
  free(rods);
  return 0;
}
