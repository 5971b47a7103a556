// lapi_calls: what the calls of LAPI cost between the tasks of a host that have no data to move,
// the memory that a task needs, and the processor time of a job that waits.
//
//   lapi_calls IDLE_MS
//
// All tasks call at the same time, each its right neighbour, and task 0 is timed: medians of
// `rounds` calls. Rmw: fetch-and-add, until the old value is there. Fence: a put of 8 bytes and
// LAPI_Fence. Active message: 8 bytes there, the handler's completion counter at the origin back.
// Gfence: all tasks. Memory: the task's share (Pss) after all of this. Idle: the processor time of
// all threads of a task, in percent of a core, and how often one of them sleeps in a second, during
// a wait of IDLE_MS. On a virtual machine a wake alone may be charged a millisecond.
#define _POSIX_C_SOURCE 200112L
#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { rounds = 1001, warm_rounds = 100, most_tasks = 64 };

struct job {
  lapi_handle_t handle;
  int task, tasks, neighbour;
  void* numbers[most_tasks];
  void* windows[most_tasks];
  void* starts[most_tasks];
};

static int number;
static long long window;
static lapi_cntr_t start;

static void check(int code) {
  char text[LAPI_MAX_ERR_STRING];
  if (code == LAPI_SUCCESS) return;
  LAPI_Msg_string(code, text);
  fprintf(stderr, "lapi_calls: %s\n", text);
  exit(1);
}

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static void* handle_message(lapi_handle_t* handle, void* header, uint* header_len,
                            lapi_return_info_t* info, compl_hndlr_t** completion, void** user) {
  (void)handle, (void)header, (void)header_len, (void)info, (void)user;
  *completion = NULL;
  return NULL;
}

static void do_rmw(struct job* job) {
  int one = 1, before;
  lapi_cntr_t done;
  check(LAPI_Setcntr(job->handle, &done, 0));
  check(LAPI_Rmw(job->handle, FETCH_AND_ADD, (uint)job->neighbour, job->numbers[job->neighbour],
                 &one, &before, &done));
  check(LAPI_Waitcntr(job->handle, &done, 1, NULL));
}

static void do_fence(struct job* job) {
  long long value = job->task;
  check(LAPI_Put(job->handle, (uint)job->neighbour, sizeof value, job->windows[job->neighbour],
                 &value, NULL, NULL, NULL));
  check(LAPI_Fence(job->handle));
}

static void do_message(struct job* job) {
  long long value = job->task;
  lapi_cntr_t done;
  check(LAPI_Setcntr(job->handle, &done, 0));
  check(LAPI_Amsend(job->handle, (uint)job->neighbour, (void*)handle_message, &value, sizeof value,
                    NULL, 0, NULL, NULL, &done));
  check(LAPI_Waitcntr(job->handle, &done, 1, NULL));
}

static void do_gfence(struct job* job) { check(LAPI_Gfence(job->handle)); }

static int compare_doubles(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void tell(const struct job* job, const char* thing, double value, int wrong) {
  if (job->task == 0)
    printf(
        "{\"program\":\"lapi_calls\",\"tasks\":%d,\"thing\":\"%s\",\"value\":%.3f,\"wrong\":%d}\n",
        job->tasks, thing, value, wrong);
}

static void time_calls(struct job* job, const char* thing, void (*call)(struct job*)) {
  static double samples[rounds];
  check(LAPI_Gfence(job->handle));
  for (int i = -warm_rounds; i < rounds; i++) {
    double begun = now_us();
    call(job);
    if (i >= 0) samples[i] = now_us() - begun;
  }
  check(LAPI_Gfence(job->handle));
  qsort(samples, rounds, sizeof *samples, compare_doubles);
  tell(job, thing, samples[rounds / 2], 0);
}

// KiB; -1 if the kernel does not tell.
static double memory_kib(void) {
  char line[256];
  long kib = -1;
  FILE* file = fopen("/proc/self/smaps_rollup", "r");
  if (file == NULL) return -1;
  while (fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, "Pss:", 4) == 0) kib = strtol(line + 4, NULL, 10);
  fclose(file);
  return (double)kib;
}

static struct rusage used(void) {
  struct rusage now;
  getrusage(RUSAGE_SELF, &now);
  return now;
}

static double processor_us(const struct rusage* at) {
  return (double)(at->ru_utime.tv_sec + at->ru_stime.tv_sec) * 1e6 +
         (double)(at->ru_utime.tv_usec + at->ru_stime.tv_usec);
}

static void idle(struct job* job, long idle_ms) {
  struct timespec pause = {idle_ms / 1000, idle_ms % 1000 * 1000000};
  check(LAPI_Gfence(job->handle));
  struct rusage before = used();
  if (job->task == job->tasks - 1) {
    nanosleep(&pause, NULL);
    for (int task = 0; task < job->tasks - 1; task++)
      check(LAPI_Put(job->handle, (uint)task, 0, NULL, NULL, job->starts[task], NULL, NULL));
  } else {
    check(LAPI_Waitcntr(job->handle, &start, 1, NULL));
  }
  struct rusage after = used();
  tell(job, "idle", (processor_us(&after) - processor_us(&before)) / (double)idle_ms / 10, 0);
  tell(job, "sleeps", (double)(after.ru_nvcsw - before.ru_nvcsw) * 1e3 / (double)idle_ms, 0);
  check(LAPI_Gfence(job->handle));
}

int main(int argc, char** argv) {
  static struct job job;
  lapi_info_t info;
  if (argc != 2) return fprintf(stderr, "usage: %s IDLE_MS\n", argv[0]), 2;
  memset(&info, 0, sizeof info);
  check(LAPI_Init(&job.handle, &info));
  check(LAPI_Qenv(job.handle, TASK_ID, &job.task));
  check(LAPI_Qenv(job.handle, NUM_TASKS, &job.tasks));
  if (job.tasks < 2 || job.tasks > most_tasks)
    return fprintf(stderr, "lapi_calls: 2 to %d tasks\n", most_tasks), 2;
  job.neighbour = (job.task + 1) % job.tasks;
  check(LAPI_Address_init(job.handle, &number, job.numbers));
  check(LAPI_Address_init(job.handle, &window, job.windows));
  check(LAPI_Address_init(job.handle, &start, job.starts));
  time_calls(&job, "rmw", do_rmw);
  const int left = (job.task + job.tasks - 1) % job.tasks;
  if (number != rounds + warm_rounds) tell(&job, "rmw", 0, 1);
  time_calls(&job, "fence", do_fence);
  if (window != left) tell(&job, "fence", 0, 1);
  time_calls(&job, "message", do_message);
  time_calls(&job, "gfence", do_gfence);
  tell(&job, "memory", memory_kib(), 0);
  idle(&job, strtol(argv[1], NULL, 10));
  check(LAPI_Term(job.handle));
  return 0;
}
