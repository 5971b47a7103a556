/* lapi_task_queue: tasks take work from a queue, which is one number in task 0, by LAPI_Rmw.
 *
 *   cc lapi_task_queue.c -llapi && shima run --lapi -n 4 ./a.out
 *
 * A task that gets long pieces takes fewer of them; no task distributes the work. Task 0 works too:
 * its number is served while it computes. */
#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { pieces = 2000 };

static int next_piece;  /* in task 0: the first one that no task has */
static long long total; /* in task 0 */

static void check(int code) {
  char text[LAPI_MAX_ERR_STRING];
  if (code == LAPI_SUCCESS) return;
  LAPI_Msg_string(code, text);
  fprintf(stderr, "%s\n", text);
  exit(1);
}

/* How many steps n takes to 1 in the sequence of Collatz. */
static long long work_on(int piece) {
  long long steps = 0;
  for (long long n = piece + 1; n != 1; steps++) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

int main(void) {
  lapi_handle_t handle;
  lapi_info_t info;
  lapi_cntr_t done;
  int task, tasks, one = 1, mine = 0, taken = 0;
  long long sum = 0, before;

  memset(&info, 0, sizeof info);
  check(LAPI_Init(&handle, &info));
  check(LAPI_Qenv(handle, TASK_ID, &task));
  check(LAPI_Qenv(handle, NUM_TASKS, &tasks));
  void** queues = calloc((size_t)tasks, sizeof *queues);
  void** totals = calloc((size_t)tasks, sizeof *totals);
  check(LAPI_Address_init(handle, &next_piece, queues));
  check(LAPI_Address_init(handle, &total, totals));
  check(LAPI_Setcntr(handle, &done, 0));

  for (;;) {
    check(LAPI_Rmw(handle, FETCH_AND_ADD, 0, queues[0], &one, &taken, &done));
    check(LAPI_Waitcntr(handle, &done, 1, NULL));
    if (taken >= pieces) break;
    sum += work_on(taken);
    mine++;
  }
  check(LAPI_Rmw64(handle, FETCH_AND_ADD, 0, totals[0], &sum, &before, &done));
  check(LAPI_Waitcntr(handle, &done, 1, NULL));
  printf("task %d has worked on %d pieces\n", task, mine);

  check(LAPI_Gfence(handle));
  if (task == 0) printf("%d pieces took %lld steps\n", pieces, total);
  check(LAPI_Gfence(handle));
  check(LAPI_Term(handle));
  free(queues), free(totals);
  return 0;
}
