// cells: what the programs of the section "dsm" measure: a call at a time from one task to another
// one, which waits in a barrier.
//
// There are 1000 calls for each operation and size, in 20 batches; the figure is the median of the
// batches' averages, because a clock takes as long as the fastest calls. What a batch has left in
// progress is waited for after the clock has been read. SHIMA_BENCH_CALLS is another number of
// calls in a batch.

#ifndef SHIMA_BENCH_CELLS_H
#define SHIMA_BENCH_CELLS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { most_bytes = 1 << 20, batches = 20, usual_calls_in_batch = 50 };

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

// What is written differs from what was there; what is read goes to memory with other bytes.
static void fill(unsigned char* bytes, int number) { memset(bytes, number % 255 + 1, most_bytes); }

static long differing(const unsigned char* a, const unsigned char* b, size_t bytes) {
  long found = 0;
  for (size_t i = 0; i < bytes; i++) found += a[i] != b[i];
  return found;
}

// `finish` waits until all is done. `lost`: the bytes of WRITEs that were lost so far; NULL: none
// may be.
static void measure_cells(call* one, void (*finish)(void), unsigned long long (*lost)(void)) {
  static unsigned char data[most_bytes], back[most_bytes];
  const char* wanted = getenv("SHIMA_BENCH_CALLS");
  const int calls_in_batch = wanted && atoi(wanted) > 0 ? atoi(wanted) : usual_calls_in_batch;
  int number = 0;
  for (int operation = 0; operation < op_count; operation++)
    for (int i = 0; i < sizes_count; i++) {
      double averages[batches];
      fill(data, ++number);
      one(op_write_b, data, most_bytes);  // takes page faults
      fill(back, ++number);
      if (operation != op_read) fill(data, number);
      const unsigned long long lost_before = lost ? lost() : 0;
      for (int batch = 0; batch < batches; batch++) {
        double begun = now_ns();
        for (int k = 0; k < calls_in_batch; k++)
          one((enum operation)operation, operation == op_read ? back : data, sizes[i]);
        averages[batch] = (now_ns() - begun) / calls_in_batch;
        finish();
      }
      if (operation != op_read) {
        fill(back, ++number);
        one(op_read, back, sizes[i]);
      }
      const unsigned long long lost_bytes = lost ? lost() - lost_before : 0;
      const long wrong = lost_bytes > 0 ? 0 : differing(back, data, sizes[i]);
      qsort(averages, batches, sizeof *averages, compare_doubles);
      printf(
          "{\"program\":\"dsm\",\"op\":\"%s\",\"bytes\":%zu,\"ns\":%.1f,\"wrong_bytes\":%ld,"
          "\"lost_bytes\":%llu}\n",
          names[operation], sizes[i], averages[batches / 2], wrong, lost_bytes);
    }
}

#endif
