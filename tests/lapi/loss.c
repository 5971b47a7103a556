// RANKS: none
// A task is killed: every call that needs it fails, the error handler is called within a second,
// waits end, and the others go on. Argument: where the last task is when it dies.
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { large = 32 << 10, many = 2000 };
static _Atomic int lost_task = -1;

static void on_error(lapi_handle_t* handle, int* code, lapi_err_t* type, int* own, int* source) {
  CHECK(*handle == hndl && *code == LAPI_ERR_TASK_LOST && *type == COM_ERR && *own == task_id,
        "error handler: code %d, type %d, task %d", *code, (int)*type, *own);
  FAILS(LAPI_ERR_IN_HANDLER, "handler", LAPI_Term(hndl));
  lost_task = *source;
}

static void* on_header(lapi_handle_t* handle, void* uhdr, uint* uhdr_len, ulong* msg_len,
                       compl_hndlr_t** completion, void** user_info) {
  (void)handle, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)user_info;
  static char sink[large];
  if (task_id == num_tasks - 1) raise(SIGKILL);
  CHECK(lost_task < 0, "a message of task %d comes after its loss", lost_task);
  *completion = NULL;
  return sink;
}

static void die_in(const char* where) {
  if (strcmp(where, "computing") == 0) {
    usleep(100000);  // task 0 still waits for the others
    raise(SIGKILL);
  }
  if (strcmp(where, "sending") == 0) {  // the kernel still has a part of it
    static char data[large];
    for (int i = 0; i < many; ++i)
      OK(LAPI_Amsend(hndl, 0, (void*)1, NULL, 0, data, sizeof data, NULL, NULL, NULL));
    raise(SIGKILL);
  }
  if (strcmp(where, "cut") == 0) {
    fclose(fopen("ready", "w"));  // somebody cuts the cable of its host
    sleep(30);
    exit(0);
  }
  if (strcmp(where, "sleeping") == 0 || strcmp(where, "handler") == 0) sleep(30);
  OK(LAPI_Waitcntr(hndl, &(lapi_cntr_t){0, 0}, 1, NULL));  // "waiting": somebody kills it
}

// The victim's process, which another task kills.
static void survive(const char* where, pid_t victim, void** windows, void** counters) {
  const unsigned dead = (unsigned)(num_tasks - 1);
  lapi_cntr_t never;
  int value = 0;
  char byte = 1;
  OK(LAPI_Setcntr(hndl, &never, 0));
  if (task_id == 0 && strcmp(where, "handler") == 0)
    OK(LAPI_Amsend(hndl, dead, (void*)1, NULL, 0, NULL, 0, NULL, NULL, &never));
  else if (task_id == 0 && strcmp(where, "computing") != 0 && strcmp(where, "cut") != 0 &&
           strcmp(where, "sending") != 0)
    kill(victim, SIGKILL);
  struct timespec begun, ended;
  clock_gettime(CLOCK_MONOTONIC, &begun);
  FAILS(LAPI_ERR_TASK_LOST, "task", LAPI_Waitcntr(hndl, &never, 1, &value));
  while (lost_task < 0) usleep(1000);
  clock_gettime(CLOCK_MONOTONIC, &ended);
  CHECK(lost_task == (int)dead, "task %d is lost instead of %u", lost_task, dead);
  fprintf(stderr, "task %d: known after %.3f s\n", task_id,
          (double)(ended.tv_sec - begun.tv_sec) + (double)(ended.tv_nsec - begun.tv_nsec) * 1e-9);
  FAILS(LAPI_ERR_TASK_LOST, "task",
        LAPI_Put(hndl, dead, 1, windows[dead], &byte, NULL, NULL, NULL));
  FAILS(LAPI_ERR_TASK_LOST, "task", LAPI_Get(hndl, dead, 1, windows[dead], &byte, NULL, NULL));
  FAILS(LAPI_ERR_TASK_LOST, "task", LAPI_Gfence(hndl));
  FAILS(LAPI_ERR_TASK_LOST, "LAPI_Address_init", LAPI_Address_init(hndl, &byte, windows));
  // The others go on.
  const unsigned partner = task_id == 0 ? 1 : 0;
  if (task_id < 2 && num_tasks > 2) {
    lapi_cntr_t done;
    OK(LAPI_Setcntr(hndl, &done, 0));
    OK(LAPI_Put(hndl, partner, 1, windows[partner], &byte, counters[partner], NULL, &done));
    OK(LAPI_Waitcntr(hndl, &done, 1, NULL));
    OK(LAPI_Waitcntr(hndl, counters[task_id], 1, NULL));
    OK(LAPI_Fence(hndl));
    // A fence needs its partner: neither leaves before the other's has ended.
    OK(LAPI_Put(hndl, partner, 0, NULL, NULL, counters[partner], NULL, NULL));
    OK(LAPI_Waitcntr(hndl, counters[task_id], 1, NULL));
  }
}

int main(int argc, char** argv) {
  static char window[8];
  static lapi_cntr_t counter;
  const char* where = argc > 1 ? argv[1] : "computing";
  begin_with(on_error, 0);
  OK(LAPI_Addr_set(hndl, (void*)on_header, 1));
  void** windows = calloc((size_t)num_tasks, sizeof *windows);
  void** counters = calloc((size_t)num_tasks, sizeof *counters);
  void** ready_of = calloc((size_t)num_tasks, sizeof *ready_of);
  void** pids = calloc((size_t)num_tasks, sizeof *pids);
  OK(LAPI_Address_init(hndl, window, windows));
  OK(LAPI_Address_init(hndl, &counter, counters));
  OK(LAPI_Address_init(hndl, (void*)(long)getpid(), pids));
  // So that the survivors' counters are known to come from each other.
  if (task_id < 2)
    OK(LAPI_Put(hndl, task_id == 0 ? 1 : 0, 0, NULL, NULL, counters[task_id == 0 ? 1 : 0], NULL,
                NULL));
  OK(LAPI_Gfence(hndl));
  if (task_id < 2 && num_tasks > 2) OK(LAPI_Waitcntr(hndl, &counter, 1, NULL));
  // All have left the fence before one is killed: task 0 and the victim wait for all.
  static lapi_cntr_t ready;
  OK(LAPI_Address_init(hndl, &ready, ready_of));
  OK(LAPI_Put(hndl, (unsigned)(num_tasks - 1), 0, NULL, NULL, ready_of[num_tasks - 1], NULL, NULL));
  OK(LAPI_Put(hndl, 0, 0, NULL, NULL, ready_of[0], NULL, NULL));
  if (task_id == 0 || task_id == num_tasks - 1) OK(LAPI_Waitcntr(hndl, &ready, num_tasks, NULL));
  if (task_id == num_tasks - 1) die_in(where);
  survive(where, (pid_t)(long)pids[num_tasks - 1], windows, counters);
  OK(LAPI_Term(hndl));
  printf("task %d survives\n", task_id);
  return 0;
}
