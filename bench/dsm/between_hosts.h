// between_hosts: what the programs of the section "lapi_hosts" measure: a stream of small writes to
// another task, and reads from a task that computes.
//
//   PROGRAM stream    or    PROGRAM get LOOPS COMPUTE_MS
//
// Task 0 measures. Stream: the median of 7 rounds of 20 000 writes of 8 bytes, their completion
// included. Get: in each loop the target computes, and is then read once, at a time when it has
// computed for a quarter of its time; the median of the loops.

#ifndef SHIMA_BENCH_BETWEEN_HOSTS_H
#define SHIMA_BENCH_BETWEEN_HOSTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { most_samples = 1000, stream_rounds = 7, stream_writes = 20000, slots = 512 };

struct between {
  int task;
  void (*put)(int slot, const long long* value);  // to task 1; perhaps not complete
  void (*finish)(void);                           // all puts are complete
  void (*get)(int slot, long long* value);        // from task 1
  void (*meet)(void);
  long long* own;  // the slots that others access
};

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static int compare_doubles(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void print_median(const char* name, double* samples, int count, int wrong) {
  qsort(samples, (size_t)count, sizeof *samples, compare_doubles);
  printf("{\"program\":\"between_hosts\",\"thing\":\"%s\",\"us\":%.4f,\"wrong\":%d}\n", name,
         samples[count / 2], wrong);
}

static void measure_stream(const struct between* way) {
  double samples[stream_rounds];
  static long long values[slots];
  int wrong = 0;
  for (int round = 0; round < stream_rounds; round++) {
    way->meet();
    if (way->task == 0) {
      for (int slot = 0; slot < slots; slot++) values[slot] = round * slots + slot;
      double begun = now_us();
      for (int i = 0; i < stream_writes; i++) way->put(i % slots, &values[i % slots]);
      way->finish();
      samples[round] = (now_us() - begun) / stream_writes;
    }
    way->meet();
    if (way->task == 0) {
      long long found;
      way->get(slots - 1, &found);
      wrong += found != values[slots - 1];
    }
  }
  way->meet();
  if (way->task == 0) print_median("stream", samples, stream_rounds, wrong);
}

static void compute(double us) {
  volatile double sum = 0;
  for (double begun = now_us(); now_us() - begun < us;)
    for (int i = 0; i < 1000; i++) sum = sum + i;
}

static void measure_gets(const struct between* way, int loops, double compute_us) {
  double samples[most_samples];
  int wrong = 0;
  for (int loop = 0; loop < loops; loop++) {
    way->own[0] = loop;
    way->meet();
    if (way->task == 1) {
      compute(compute_us);
    } else if (way->task == 0) {
      long long found;
      struct timespec quarter = {(time_t)(compute_us / 4e6),
                                 (long)(compute_us / 4 * 1e3) % 1000000000};
      nanosleep(&quarter, NULL);
      double begun = now_us();
      way->get(0, &found);
      samples[loop] = now_us() - begun;
      wrong += found != loop;
    }
    way->meet();
  }
  if (way->task == 0) print_median("get", samples, loops, wrong);
}

static int measure_between(const struct between* way, int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "stream") == 0) return measure_stream(way), 0;
  const int loops = argc == 4 && strcmp(argv[1], "get") == 0 ? atoi(argv[2]) : 0;
  if (loops < 1 || loops > most_samples)
    return fprintf(stderr, "usage: %s stream | get LOOPS COMPUTE_MS\n", argv[0]), 2;
  measure_gets(way, loops, atof(argv[3]) * 1e3);
  return 0;
}

#endif
