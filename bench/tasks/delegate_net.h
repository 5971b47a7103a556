// delegate_net: the measurements that the rank and its requesters share.

#ifndef SHIMA_BENCH_DELEGATE_NET_H
#define SHIMA_BENCH_DELEGATE_NET_H

#include "tasks.h"

#include <stdint.h>
#include <string.h>

enum { largest = 1 << 20, rounds = 7, echo_tag = 1, end_tag = 2, reduced_bytes = 8 };
enum { first_file_piece = 64, file_pieces = 256 };

// From a serving task to its requester: the other rank's memory for puts.
struct targets {
  uint64_t address;
};

static unsigned char out[largest], in[largest];

// A figure is the median of some rounds; all participants know the number of calls of a round.
static inline int calls_of(size_t bytes) { return bytes > 65536 ? 5 : bytes > 4096 ? 30 : 100; }

static inline double measure(void (*call)(size_t), size_t bytes) {
  double ns[rounds];
  const int calls = calls_of(bytes);
  for (int i = 0; i < 5; i++) call(bytes);
  for (int round = 0; round < rounds; round++) {
    const double begun = now_ns();
    for (int i = 0; i < calls; i++) call(bytes);
    ns[round] = (now_ns() - begun) / calls;
  }
  return median_of(ns, rounds);
}

static inline void report(const char* thing, const char* way, const char* waiting, size_t bytes,
                          double ns, int wrong) {
  printf(
      "{\"program\":\"delegate_net\",\"thing\":\"%s\",\"way\":\"%s\",\"waiting\":\"%s\","
      "\"bytes\":%zu,\"ns\":%.1f,\"wrong_bytes\":%d}\n",
      thing, way, waiting, bytes, ns, wrong);
  fflush(stdout);
}

#endif
