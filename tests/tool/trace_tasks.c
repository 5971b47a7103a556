/* Tasks of LAPI and of a distributed shared memory, with known numbers of calls to the next task.
 *   calls      each call a few times; task 0 waits for the last task
 *   dsm        the calls of a shared memory only
 *   many N     N small puts to itself with waits; N small writes and reads of a shared memory
 *   killed N   the same; then task 1 is killed
 * Puts to itself need no other task to run, so they are short on a busy machine, too.
 */
/* RANKS: none */
#include <lapi.h>
#include <shima/dsm.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { most = 16 };

static lapi_handle_t lapi;
static int task, tasks;
static uint next;
static char window[4096], data[4096];
static long long word;
static lapi_cntr_t arrived, done;
static void *windows[most], *counters[most], *words[most];

static void check(int code, const char* what) {
  if (code == 0) return;
  fprintf(stderr, "task %d: %s: %d\n", task, what, code);
  exit(1);
}
#define OK(call) check(call, #call)

static void* on_message(lapi_handle_t* handle, void* header, uint* header_bytes, ulong* data_bytes,
                        compl_hndlr_t** completion, void** user) {
  (void)handle, (void)header, (void)header_bytes, (void)data_bytes, (void)user;
  *completion = NULL;
  return window + 2048;
}

static void begin(void) {
  lapi_info_t info;
  memset(&info, 0, sizeof info);
  OK(LAPI_Init(&lapi, &info));
  OK(LAPI_Qenv(lapi, TASK_ID, &task));
  OK(LAPI_Qenv(lapi, NUM_TASKS, &tasks));
  next = (uint)((task + 1) % tasks);
  OK(LAPI_Address_init(lapi, window, windows));
  OK(LAPI_Address_init(lapi, &arrived, counters));
  OK(LAPI_Address_init(lapi, &word, words));
  OK(LAPI_Addr_set(lapi, (void*)on_message, 1));
  OK(LAPI_Gfence(lapi));
}

static void wait_done(int count) { OK(LAPI_Waitcntr(lapi, &done, count, NULL)); }

static void transfer(void) {
  void* there[2] = {(char*)windows[next], (char*)windows[next] + 1024};
  void* here[2] = {data, data + 200};
  ulong lens[2] = {100, 28};
  lapi_vec_t to = {LAPI_GEN_IOVECTOR, 2, there, lens};
  lapi_vec_t from = {LAPI_GEN_IOVECTOR, 2, here, lens};
  lapi_xfer_t command;
  int one = 1, before = 0;
  long long wide_one = 1, wide_before = 0;
  for (int i = 0; i < 3; ++i)
    OK(LAPI_Put(lapi, next, 1000, windows[next], data, NULL, NULL, &done));
  wait_done(3);
  OK(LAPI_Get(lapi, next, 500, windows[next], data, NULL, &done));
  wait_done(1);
  OK(LAPI_Putv(lapi, next, &to, &from, NULL, NULL, &done));
  wait_done(1);
  OK(LAPI_Getv(lapi, next, &to, &from, NULL, &done));
  wait_done(1);
  OK(LAPI_Amsend(lapi, next, (void*)1, &one, sizeof one, data, 24, NULL, NULL, &done));
  wait_done(1);
  OK(LAPI_Rmw(lapi, FETCH_AND_ADD, next, (int*)words[next], &one, &before, &done));
  wait_done(1);
  OK(LAPI_Rmw64(lapi, FETCH_AND_ADD, next, (long long*)words[next], &wide_one, &wide_before,
                &done));
  wait_done(1);
  memset(&command, 0, sizeof command);
  command.Put.Xfer_type = LAPI_PUT_XFER;
  command.Put.tgt = next;
  command.Put.tgt_addr = (lapi_long_t)windows[next];
  command.Put.org_addr = data;
  command.Put.len = 64;
  command.Put.cmpl_cntr = &done;
  OK(LAPI_Xfer(lapi, &command));
  wait_done(1);
  OK(LAPI_Fence(lapi));
}

/* Task 0 waits for two puts, which the last task makes. */
static void wait_for_last(void) {
  if (task == tasks - 1)
    for (int i = 0; i < 2; ++i)
      OK(LAPI_Put(lapi, 0, 16, windows[0], data, counters[0], NULL, NULL));
  if (task == 0) OK(LAPI_Waitcntr(lapi, &arrived, 2, NULL));
}

static void use_memory(void) {
  dsm* memory = NULL;
  const dsm_options options = {.size = 8192};
  const int right =
      (dsm_open(&options, &memory) == 0) ? (dsm_task(memory) + 1) % dsm_tasks(memory) : -1;
  if (right < 0) exit(2);
  for (int i = 0; i < 7; ++i) OK(dsm_write(memory, right, 256, data, 100));
  for (int i = 0; i < 5; ++i) OK(dsm_read(memory, right, 512, data, 8));
  OK(dsm_write_b(memory, right, 1024, data, 50));
  OK(dsm_fetch_add_64(memory, 0, 8, 1, NULL));
  if (dsm_compare_and_swap_32(memory, right, 64, 0, 0) != 1) exit(3);
  if (dsm_read(memory, right, 8190, data, 8) == 0) exit(4); /* behind the end */
  OK(dsm_fence(memory));
  OK(dsm_barrier(memory));
  OK(dsm_close(memory));
}

static void call_often(int count, int is_killed) {
  dsm* memory = NULL;
  const dsm_options options = {.size = 8192};
  OK(dsm_open(&options, &memory));
  for (int i = 0; i < count; ++i) {
    OK(LAPI_Put(lapi, (uint)task, 8, windows[task], data, NULL, NULL, &done));
    wait_done(1);
  }
  for (int i = 0; i < count; ++i) OK(dsm_write(memory, (int)next, 0, data, 16));
  for (int i = 0; i < count; ++i) OK(dsm_read(memory, (int)next, 16, data, 32));
  OK(dsm_barrier(memory));
  if (is_killed && task == 1) raise(SIGKILL);
  if (is_killed) return;
  OK(dsm_close(memory));
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? atoi(argv[2]) : 0;
  if (strcmp(what, "dsm") == 0) return use_memory(), 0;
  begin();
  if (strcmp(what, "calls") == 0) {
    transfer();
    wait_for_last();
    use_memory();
  } else {
    call_often(count, strcmp(what, "killed") == 0);
  }
  if (strcmp(what, "killed") == 0) return 0;
  OK(LAPI_Gfence(lapi));
  OK(LAPI_Term(lapi));
  return 0;
}
