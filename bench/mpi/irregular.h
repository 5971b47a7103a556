// irregular: pieces of 1 to 12 doubles, one after the other in a file, each of a random rank.
//
// Shared by the program that moves them with MPI-IO and the one that does without.

#ifndef SHIMA_BENCH_IRREGULAR_H
#define SHIMA_BENCH_IRREGULAR_H

#include "measure.h"

enum { most_doubles = 12, variable_count = 400 };

struct pieces {
  long count;
  long doubles;
  MPI_Aint all_bytes;  // of all ranks
  int* lens;
  MPI_Aint* offsets;
  long starts[variable_count + 1];  // the first piece of each variable
};

static inline uint64_t random_word(uint64_t number) {
  uint64_t x = (number + 1) * UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
}

static inline struct pieces deal(long total, int rank, int ranks) {
  struct pieces own = {.lens = malloc((size_t)total * sizeof *own.lens),
                       .offsets = malloc((size_t)total * sizeof *own.offsets)};
  MPI_Aint offset = 0;
  int variable = 0;
  for (long i = 0; i < total; ++i) {
    while (variable < i * variable_count / total) own.starts[++variable] = own.count;
    const uint64_t word = random_word((uint64_t)i);
    const int doubles = 1 + (int)(word % most_doubles);
    if ((int)(word / most_doubles % (uint64_t)ranks) == rank) {
      own.lens[own.count] = doubles;
      own.offsets[own.count++] = offset;
      own.doubles += doubles;
    }
    offset += doubles * (MPI_Aint)sizeof(double);
  }
  while (variable < variable_count) own.starts[++variable] = own.count;
  own.all_bytes = offset;
  return own;
}

static inline void fill(const struct pieces* own, uint64_t* words) {
  for (long i = 0; i < own->count; ++i)
    for (int k = 0; k < own->lens[i]; ++k)
      *words++ = word_at((uint64_t)own->offsets[i] + (uint64_t)k * sizeof *words);
}

// Prints the times of four calls, in ns a piece, as one JSON object. `more`: further members of it.
static inline void report_irregular(const char* program, const double* ns, long wrong,
                                    const char* more) {
  printf(
      "{\"program\":\"%s\",\"write\":%.1f,\"write again\":%.1f,\"read\":%.1f,"
      "\"read again\":%.1f,%s\"wrong_words\":%ld}\n",
      program, ns[0], ns[1], ns[2], ns[3], more, wrong);
}

#endif
