// cells: what the programs of the section "dsm" measure: a call at a time from one task to another
// one, which is not in a call.
//
// There are 1000 calls for each operation and size, in 20 batches; the figure is the median of the
// batches' averages, because a clock takes as long as the fastest calls. What a batch has left in
// progress is waited for after the clock has been read.

#ifndef SHIMA_BENCH_CELLS_H
#define SHIMA_BENCH_CELLS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { most_bytes = 1 << 20, batches = 20, calls_in_batch = 50 };

static const size_t sizes[] = {8, 64, 512, 4096, 32768, 65536, 262144, most_bytes};
enum { sizes_count = sizeof sizes / sizeof *sizes };

enum operation { op_read, op_write, op_write_b, op_count };
static const char* const names[] = {"READ", "WRITE", "WRITE_B"};

typedef void(call)(enum operation operation, void* data, size_t bytes);

static double now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int compare_doubles(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// `finish` waits until all is done. Reading back what was written must give the same bytes.
static void measure_cells(call* one, void (*finish)(void), int may_lose) {
  static unsigned char data[most_bytes], back[most_bytes];
  for (int operation = 0; operation < op_count; operation++)
    for (int i = 0; i < sizes_count; i++) {
      double averages[batches];
      memset(data, operation * 16 + i + 1, sizeof data);
      one(op_write_b, data, most_bytes);  // takes page faults
      for (int batch = 0; batch < batches; batch++) {
        double begun = now_ns();
        for (int k = 0; k < calls_in_batch; k++) one((enum operation)operation, data, sizes[i]);
        averages[batch] = (now_ns() - begun) / calls_in_batch;
        finish();
      }
      one(op_read, back, sizes[i]);
      int wrong = !may_lose && memcmp(back, data, sizes[i]) != 0;
      qsort(averages, batches, sizeof *averages, compare_doubles);
      printf("{\"program\":\"dsm\",\"op\":\"%s\",\"bytes\":%zu,\"ns\":%.1f,\"wrong_bytes\":%d}\n",
             names[operation], sizes[i], averages[batches / 2], wrong);
    }
}

#endif
