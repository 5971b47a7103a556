// RANKS: none
// Progress and processor time: a target that computes serves messages; a late task gets what was
// sent before its LAPI_Init; an idle task uses no processor time; loops over LAPI_Getcntr and
// LAPI_Probe give the core away.
#include <time.h>
#include <unistd.h>

#include "check.h"

static int variable;
static volatile int stop_computing;

static double processor_seconds(void) {
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

static void* on_stop(lapi_handle_t* handle, void* uhdr, uint* uhdr_len, ulong* msg_len,
                     compl_hndlr_t** completion, void** user_info) {
  (void)handle, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)user_info;
  stop_computing = 1;
  *completion = NULL;
  return NULL;
}

// Task 0 computes without calls until a message, which nothing but an interrupt serves, stops it.
static void while_computing(void** variables) {
  int one = 1, before = -1;
  lapi_cntr_t done;
  OK(LAPI_Setcntr(hndl, &done, 0));
  if (task_id == 0)
    while (!stop_computing) {
    }
  else
    for (int i = 0; i < 10; ++i) {
      OK(LAPI_Rmw(hndl, FETCH_AND_ADD, 0, variables[0], &one, &before, &done));
      OK(LAPI_Waitcntr(hndl, &done, 1, NULL));
    }
  if (task_id == num_tasks - 1)
    OK(LAPI_Amsend(hndl, 0, (void*)1, NULL, 0, NULL, 0, NULL, NULL, NULL));
  OK(LAPI_Gfence(hndl));
  CHECK(task_id != 0 || variable == 10 * (num_tasks - 1), "the sum is %d", variable);
}

static void idle(void) {
  const double before = processor_seconds();
  sleep(1);
  const double used = processor_seconds() - before;
  CHECK(used < 0.02, "%g s of processor time in an idle second", used);
}

// Task 1 polls for what task 0 sends after a second of sleep.
static void polling(void** counters) {
  static char byte;
  lapi_cntr_t* const own = counters[task_id];
  OK(LAPI_Setcntr(hndl, own, 0));
  OK(LAPI_Gfence(hndl));
  if (task_id == 0) {
    sleep(1);
    OK(LAPI_Put(hndl, 1, 0, NULL, &byte, counters[1], NULL, NULL));
  }
  if (task_id == 1) {
    const double before = processor_seconds();
    int value = 0;
    while (value == 0) OK(LAPI_Getcntr(hndl, own, &value));
    const double used = processor_seconds() - before;
    CHECK(used < 0.8, "%g s of processor time in a second of polling", used);
  }
  OK(LAPI_Gfence(hndl));
}

// Whether this is task 1; known before LAPI_Init.
static int is_late_task(void) {
  const char* place = getenv("SHIMA_LAPI");
  const char* number = getenv("PMI_RANK");
  if (number == NULL) number = getenv("OMPI_COMM_WORLD_RANK");
  return (place != NULL && strstr(place, "task=1 ") != NULL) ||
         (number != NULL && strcmp(number, "1") == 0);
}

int main(void) {
  static lapi_cntr_t counter;
  if (is_late_task()) usleep(500000);
  begin();
  OK(LAPI_Addr_set(hndl, (void*)on_stop, 1));
  void** variables = calloc((size_t)num_tasks, sizeof *variables);
  void** counters = calloc((size_t)num_tasks, sizeof *counters);
  OK(LAPI_Address_init(hndl, &variable, variables));
  OK(LAPI_Address_init(hndl, &counter, counters));
  while_computing(variables);
  idle();
  OK(LAPI_Gfence(hndl));
  polling(counters);
  end();
  printf("task %d of %d is done\n", task_id, num_tasks);
  return 0;
}
