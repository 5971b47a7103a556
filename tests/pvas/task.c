/*
 * RANKS: none
 *
 * An ordinary program, not written for spaces, that run.sh starts as tasks.
 *
 *   task [say] [exit N] [signal N] [wait] [big] [main-ends]
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* In a task, the auxiliary vector has the partition. */
static int is_task(void) { return getauxval(0x53505641) != 0; }

static void* end_later(void* nothing) {
  usleep(100000);
  puts("a thread goes on");
  fflush(stdout);
  exit(9);
  return nothing;
}

static int use_memory(void) {
  const size_t size = 64 << 20;
  char* block = malloc(size);
  memset(block, 1, size);
  block = realloc(block, 3 * size);
  const int fine = block[size - 1] == 1;
  free(block);
  return fine ? 0 : 1;
}

static void on_signal(int number) {
  (void)!write(1, number == SIGUSR1 ? "got USR1\n" : "got TERM\n", 9);
  _exit(number == SIGUSR1 ? 21 : 22);
}

static void wait_for_signals(void) {
  signal(SIGUSR1, on_signal);
  signal(SIGTERM, on_signal);
  printf("waiting %d\n", getpid());
  fflush(stdout);
  for (;;) pause();
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "say";
  const int number = argc > 2 ? atoi(argv[2]) : 0;
  if (!strcmp(what, "say"))
    printf("%s of process %d\n", is_task() ? "a task" : "no task", getpid());
  if (!strcmp(what, "exit")) return number;
  if (!strcmp(what, "signal")) raise(number);
  if (!strcmp(what, "big")) return use_memory();
  if (!strcmp(what, "wait")) wait_for_signals();
  if (!strcmp(what, "main-ends")) {
    pthread_t thread;
    pthread_create(&thread, NULL, end_later, NULL);
    pthread_exit(NULL);
  }
  return 0;
}
