// RANKS: none
// The last task is killed, or exits without dsm_close: every call that needs it fails within a
// second, the others go on, and dsm_close waits for all of them. A child of a task may make no
// call. Arguments: the way; "kill" or "exit".
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void as_child(void) {
  char byte = 0;
  const pid_t child = fork();
  if (child == 0) {
    dsm* other = NULL;
    FAILS(DSM_ERR_NOT_A_TASK, "fork", dsm_read(memory, 0, 0, &byte, 1));
    FAILS(DSM_ERR_NOT_A_TASK, "fork", dsm_open(NULL, &other));
    CHECK(dsm_address(memory) == NULL, "a child has an address");
    _exit(0);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended with %d", status);
}

int main(int argc, char** argv) {
  way = argc > 1 ? atoi(argv[1]) : 0;
  const int is_killed = argc > 2 && strcmp(argv[2], "kill") == 0;
  begin(1 << 20);
  as_child();
  const int dead = tasks - 1;
  uint64_t value = 1, ready = 0;
  OK(dsm_barrier(memory));
  if (task == dead) {
    // The others have left the barrier.
    while (ready < (uint64_t)dead) {
      OK(dsm_fetch_or_64(memory, dead, 0, 0, &ready));
      usleep(1000);
    }
    if (is_killed) raise(SIGKILL);
    exit(0);
  }
  OK(dsm_fetch_add_64(memory, dead, 0, 1, NULL));
  const double begun = now_s();
  int rc = 0;
  while ((rc = dsm_write(memory, dead, 8, &value, 8)) == 0 && now_s() < begun + 20) usleep(1000);
  CHECK(rc == DSM_ERR_LOST || rc == DSM_ERR_TIMEOUT, "%d: %s", rc, dsm_error_message());
  // That these writes are lost does not concern another task.
  const int partner = task == 0 ? dead - 1 : 0;
  OK(dsm_read(memory, partner, 8, &value, 8));
  fprintf(stderr, "task %d: known after %.3f s\n", task, now_s() - begun);
  // A call to the error handler of LAPI tells it to all calls.
  while ((rc = dsm_read(memory, dead, 8, &value, 8)) == 0 && now_s() < begun + 20) usleep(1000);
  CHECK(rc == DSM_ERR_LOST || rc == DSM_ERR_TIMEOUT, "%d: %s", rc, dsm_error_message());
  rc = dsm_fetch_add_64(memory, dead, 8, 1, NULL);
  CHECK(rc == DSM_ERR_LOST || rc == DSM_ERR_TIMEOUT, "%d: %s", rc, dsm_error_message());
  FAILS(DSM_ERR_LOST, "task", dsm_barrier(memory));
  // The others go on.
  uint64_t before = 0;
  for (int i = 0; i < 10; ++i) {
    OK(dsm_fetch_add_64(memory, partner, 64 + 8 * (uint64_t)task, 1, &before));
    CHECK(before == (uint64_t)i, "the counter is %llu", (unsigned long long)before);
  }
  OK(dsm_protect(memory, 0, 64, DSM_READ_ONLY));
  // Task 0 closes at once, and waits for the others.
  if (task != 0) {
    usleep(300000);
    OK(dsm_fetch_add_64(memory, 0, 128, 1, &before));
  }
  rc = dsm_close(memory);
  CHECK(rc == 0 || rc == DSM_ERR_LOST, "dsm_close returned %d: %s", rc, dsm_error_message());
  printf("task %d survives\n", task);
  return 0;
}
