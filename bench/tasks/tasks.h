// tasks: shared by the benchmark programs that are tasks of a space: clock, cores, medians.

#ifndef SHIMA_BENCH_TASKS_H
#define SHIMA_BENCH_TASKS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "shima/pvas.h"

static inline void die(const char* what) {
  fprintf(stderr, "bench: %s: %s\n", what, pvas_error_message());
  exit(1);
}

static inline double now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static inline int count_cores(void) {
  cpu_set_t usable;
  sched_getaffinity(0, sizeof usable, &usable);
  return CPU_COUNT(&usable);
}

// Binds to the n-th core that this process may use; a launcher may have left it only one.
static inline void pin(int n) {
  cpu_set_t usable, one;
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE; core++) CPU_SET(core, &one);
  sched_setaffinity(0, sizeof one, &one);
  sched_getaffinity(0, sizeof usable, &usable);
  CPU_ZERO(&one);
  for (size_t core = 0; core < CPU_SETSIZE; core++)
    if (CPU_ISSET(core, &usable) && n-- == 0) CPU_SET(core, &one);
  if (CPU_COUNT(&one) == 0 || sched_setaffinity(0, sizeof one, &one)) die("pinning");
}

static inline int compare_doubles(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static inline double median_of(double* values, int count) {
  qsort(values, (size_t)count, sizeof *values, compare_doubles);
  return values[count / 2];
}

#endif
