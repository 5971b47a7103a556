/* lapi_ping_pong: the time of a message between two tasks, by LAPI_Put and counters.
 *
 *   cc lapi_ping_pong.c -llapi && shima run --lapi -n 2 ./a.out
 */
#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { most = 1 << 20, rounds = 1000 };

static char window[most], data[most];
static lapi_cntr_t arrived;

static void check(int code) {
  char text[LAPI_MAX_ERR_STRING];
  if (code == LAPI_SUCCESS) return;
  LAPI_Msg_string(code, text);
  fprintf(stderr, "%s\n", text);
  exit(1);
}

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

int main(void) {
  lapi_handle_t handle;
  lapi_info_t info;
  int task, tasks, left;
  void *windows[2], *counters[2];

  memset(&info, 0, sizeof info);
  check(LAPI_Init(&handle, &info));
  check(LAPI_Qenv(handle, TASK_ID, &task));
  check(LAPI_Qenv(handle, NUM_TASKS, &tasks));
  if (tasks != 2) return fprintf(stderr, "start two tasks\n"), 1;

  /* Programs need not be loaded at the same addresses. */
  check(LAPI_Address_init(handle, window, windows));
  check(LAPI_Address_init(handle, &arrived, counters));

  unsigned other = (unsigned)(1 - task);
  for (unsigned long bytes = 8; bytes <= most; bytes *= 8) {
    check(LAPI_Gfence(handle));
    double begun = now_us();
    for (int i = 0; i < rounds; i++) {
      /* The counter is in the other task's memory; it grows when the data is there. */
      if (task == 0)
        check(LAPI_Put(handle, other, bytes, windows[other], data, counters[other], NULL, NULL));
      check(LAPI_Waitcntr(handle, &arrived, 1, &left));
      if (task == 1)
        check(LAPI_Put(handle, other, bytes, windows[other], data, counters[other], NULL, NULL));
    }
    if (task == 0) printf("%8lu bytes  %8.2f us\n", bytes, (now_us() - begun) / rounds / 2);
  }
  check(LAPI_Gfence(handle));
  check(LAPI_Term(handle));
  return 0;
}
