// RANKS: none
// The last task is killed at some step (kills.py). The others: the calls that need it fail, the
// error handler is called, waits end, and they go on with each other. Argument: a step that this
// program knows, or one of SHIMA_FAULT.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { rounds = 6, burst = 60, large = 8 << 20, guard_s = 40 };
static const char* step = "";
static _Atomic int lost_task = -1;
static _Atomic int handler_calls;
static double handler_at, failed_at;
static unsigned char *landing, *origin;
static int words[64];
static _Atomic int came;

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static int is_victim(void) { return task_id == num_tasks - 1; }

static void die_in(const char* where) {
  if (is_victim() && strcmp(step, where) == 0) raise(SIGKILL);
}

static void on_error(lapi_handle_t* handle, int* code, lapi_err_t* type, int* own, int* source) {
  (void)handle, (void)own;
  if (*type == USER_ERR) return;  // the other survivor has not registered its handlers yet
  CHECK(*code == LAPI_ERR_TASK_LOST && *type == COM_ERR, "error handler: code %d", *code);
  handler_at = now();
  lost_task = *source;
  ++handler_calls;
}

static void on_complete(lapi_handle_t* handle, void* info) {
  (void)handle, (void)info;
  die_in("completion");
}

static void* on_header(lapi_handle_t* handle, void* uhdr, uint* uhdr_len, ulong* msg_len,
                       compl_hndlr_t** completion, void** user_info) {
  (void)handle, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)user_info;
  die_in("header");
  *completion = on_complete;
  return landing;
}

// Between the survivors.
static void* on_survivor(lapi_handle_t* handle, void* uhdr, uint* uhdr_len, ulong* msg_len,
                         compl_hndlr_t** completion, void** user_info) {
  (void)handle, (void)user_info;
  CHECK(*uhdr_len == 4 && memcmp(uhdr, "live", 4) == 0 && *msg_len == 0, "a survivor's message");
  *completion = NULL;
  ++came;
  return NULL;
}

static _Atomic int is_partner_ready;
static void* on_ready(lapi_handle_t* handle, void* uhdr, uint* uhdr_len, ulong* msg_len,
                      compl_hndlr_t** completion, void** user_info) {
  (void)handle, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)user_info;
  *completion = NULL;
  is_partner_ready = 1;
  return NULL;
}

// True once a call has failed because the victim is lost; other errors fail the test.
static int failed(int rc, const char* call) {
  char text[LAPI_MAX_ERR_STRING];
  LAPI_Msg_string(rc, text);
  CHECK(rc == LAPI_SUCCESS || rc == LAPI_ERR_TASK_LOST, "%s returned %d: %s", call, rc, text);
  if (rc == LAPI_SUCCESS) return 0;
  failed_at = now();
  CHECK(strstr(text, "task") != NULL, "%s names no task: %s", call, text);
  fprintf(stderr, "task %d: %s: %s\n", task_id, call, text);
  return 1;
}
#define TRY(call) \
  if (failed(call, #call)) return 1

static void* die_soon(void* after_us) {
  usleep((useconds_t)(long)after_us);
  raise(SIGKILL);
  return NULL;
}

static int wait_for(lapi_cntr_t* counter, int value) {
  TRY(LAPI_Waitcntr(hndl, counter, value, NULL));
  return 0;
}

// Everything, with the task behind and that task's memory; small and large.
static int exchange(unsigned char** windows, int** numbers, int round) {
  const unsigned next = (unsigned)((task_id + 1) % num_tasks);
  static lapi_cntr_t org, cmpl;
  int one = 1, before;
  const size_t lens[] = {8, 4000, 100000, large};
  for (int i = 0; i < 4; ++i) {
    TRY(LAPI_Put(hndl, next, lens[i], windows[next], origin, NULL, &org, &cmpl));
    if (wait_for(&org, 1) || wait_for(&cmpl, 1)) return 1;
    TRY(LAPI_Get(hndl, next, lens[i], windows[next], origin, NULL, &org));
    if (wait_for(&org, 1)) return 1;
    TRY(LAPI_Amsend(hndl, next, (void*)1, &round, sizeof round, origin, lens[i], NULL, &org,
                    &cmpl));
    if (wait_for(&org, 1) || wait_for(&cmpl, 1)) return 1;
  }
  for (int i = 0; i < burst; ++i)
    TRY(LAPI_Put(hndl, next, 4000, windows[next], origin, NULL, NULL,
                 &cmpl));  // more than a stream holds
  if (wait_for(&cmpl, burst)) return 1;
  TRY(LAPI_Rmw(hndl, FETCH_AND_ADD, next, numbers[next], &one, &before, &org));
  return wait_for(&org, 1);
}

// True once the loss is known.
static int work(void) {
  void** windows = calloc((size_t)num_tasks, sizeof *windows);
  void** numbers = calloc((size_t)num_tasks, sizeof *numbers);
  TRY(LAPI_Address_init(hndl, landing, windows));
  TRY(LAPI_Address_init(hndl, words, numbers));
  TRY(LAPI_Gfence(hndl));
  const double until = now() + guard_s;
  const int leaves =
      is_victim() && strcmp(step, "lapi.term") == 0;  // else it works until it is killed
  for (int round = 0; !leaves || round < rounds; ++round) {
    CHECK(now() < until, "the victim lives");
    if (is_victim() && round == 1 && strncmp(step, "within", 6) == 0) {
      pthread_t thread;
      pthread_create(&thread, NULL, die_soon, (void*)atol(step + 6));
    }
    if (round == 1) die_in("between");
    if (exchange((unsigned char**)windows, (int**)numbers, round)) return 1;
    TRY(LAPI_Fence(hndl));
    if (round % 2 == 0) TRY(LAPI_Gfence(hndl));
    if (round == 2) TRY(LAPI_Address_init(hndl, words, numbers));
  }
  return 0;
}

// The calls on the victim fail; those on each other do not.
static void survive(void) {
  const unsigned dead = (unsigned)(num_tasks - 1), partner = 1U - (unsigned)task_id;
  int one = 1, before;
  void* table[64];
  const double until = now() + guard_s;
  while (handler_calls == 0 && now() < until) usleep(1000);
  CHECK(handler_calls == 1 && lost_task == (int)dead, "%d calls of the error handler, for task %d",
        handler_calls, lost_task);
  FAILS(LAPI_ERR_TASK_LOST, "task", LAPI_Put(hndl, dead, 8, words, words, NULL, NULL, NULL));
  FAILS(LAPI_ERR_TASK_LOST, "task", LAPI_Get(hndl, dead, large, landing, origin, NULL, NULL));
  FAILS(LAPI_ERR_TASK_LOST, "task",
        LAPI_Amsend(hndl, dead, (void*)1, NULL, 0, NULL, 0, NULL, NULL, NULL));
  FAILS(LAPI_ERR_TASK_LOST, "task",
        LAPI_Rmw(hndl, FETCH_AND_ADD, dead, words, &one, &before, NULL));
  FAILS(LAPI_ERR_TASK_LOST, "task", LAPI_Gfence(hndl));
  FAILS(LAPI_ERR_TASK_LOST, "task", LAPI_Address_init(hndl, words, table));
  lapi_cntr_t done;
  OK(LAPI_Setcntr(hndl, &done, 0));
  while (!is_partner_ready && now() < until) {
    OK(LAPI_Amsend(hndl, partner, (void*)3, NULL, 0, NULL, 0, NULL, NULL, NULL));
    usleep(2000);
  }
  OK(LAPI_Amsend(hndl, partner, (void*)3, NULL, 0, NULL, 0, NULL, NULL, NULL));
  for (int i = 0; i < 100; ++i)
    OK(LAPI_Amsend(hndl, partner, (void*)2, (void*)"live", 4, NULL, 0, NULL, NULL, &done));
  OK(LAPI_Waitcntr(hndl, &done, 100, NULL));
  // The victim's loss is told once; the partner leaves as soon as it has had all messages.
  for (int i = 0; i < 2; ++i) {
    const int fenced = LAPI_Fence(hndl);
    CHECK(fenced == LAPI_SUCCESS || fenced == LAPI_ERR_TASK_LOST, "LAPI_Fence returned %d", fenced);
  }
  while (came < 100 && now() < until) usleep(1000);
  CHECK(came == 100, "%d of 100 messages of the other survivor", came);
}

// The test waits for the end of the victim at a named pipe.
static void open_pipe_of_victim(void) {
  const char *rank = getenv("PMI_RANK"), *job = getenv("SHIMA_LAPI"), *victim = getenv("VICTIM");
  int own = rank != NULL ? atoi(rank) : -1;
  if (rank == NULL && job != NULL) sscanf(job, "fd=%*d task=%d", &own);
  if (victim != NULL && own == atoi(victim)) open("dying", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
}

int main(int argc, char** argv) {
  open_pipe_of_victim();
  step = argc > 1 ? argv[1] : "";
  landing = malloc(large);
  origin = malloc(large);
  memset(origin, 1, large);
  begin_with(on_error, 0);
  OK(LAPI_Addr_set(hndl, (void*)on_header, 1));
  OK(LAPI_Addr_set(hndl, (void*)on_survivor, 2));
  OK(LAPI_Addr_set(hndl, (void*)on_ready, 3));  // the last one
  const int knows = work();
  if (!is_victim()) {
    CHECK(knows, "the victim is not lost");
    survive();
    printf("task %d survives: call %.6f handler %.6f\n", task_id, failed_at, handler_at);
  }
  OK(LAPI_Term(hndl));
  if (is_victim()) printf("the victim has not been killed\n");
  return 0;
}
