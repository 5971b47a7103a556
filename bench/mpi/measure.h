// measure: shared by the benchmark programs in C: data that can be checked, timing, reporting.
//
// A byte of a file is a function of its offset and a seed, so that any reader can check any byte.
// A timed transfer is open, set_view, one collective call, close; the slowest rank counts. Dirty
// pages of earlier programs are written out first, because they would disturb it.

#ifndef SHIMA_BENCH_MEASURE_H
#define SHIMA_BENCH_MEASURE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // sync()
#endif

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct seconds {
  double open_to_close;
  double io;
};

// The data of one rank in one collective call.
struct transfer {
  MPI_Offset displacement;
  MPI_Datatype etype, filetype, memtype;
  void* buffer;
  int count;
};

static inline void fail(const char* what) {
  fprintf(stderr, "bench: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static inline void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING], line[MPI_MAX_ERROR_STRING + 64];
  int length;
  MPI_Error_string(code, text, &length);
  snprintf(line, sizeof line, "%s: %s", call, text);
  fail(line);
}

// Multiplying by an odd number is a bijection on 64-bit words: no two offsets share a value.
static inline uint64_t word_at(uint64_t file_offset) {
  return (file_offset / 8 + 1) * UINT64_C(0x9E3779B97F4A7C15);
}

// The byte at a file offset: the same bytes as word_at's on a little-endian machine.
static inline unsigned char byte_at(uint64_t file_offset) {
  return (unsigned char)(word_at(file_offset) >> (8 * (file_offset % 8)));
}

static inline long sum_over_ranks(long mine) {
  long all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

// A barrier that sleeps. On a machine with fewer cores than ranks, an MPI barrier that spins would
// take cores from ranks that are in the timed part.
static inline void meet(void) {
  MPI_Request request;
  int done = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) usleep(50);
}

static inline void move_collectively(MPI_File file, bool write, const struct transfer* t) {
  MPI_Status status;
  MPI_Count moved, type_bytes;
  if (write)
    check(MPI_File_write_all(file, t->buffer, t->count, t->memtype, &status), "write_all");
  else
    check(MPI_File_read_all(file, t->buffer, t->count, t->memtype, &status), "read_all");
  MPI_Type_size_x(t->memtype, &type_bytes);
  MPI_Get_elements_x(&status, MPI_BYTE, &moved);
  // An MPI may count in the basic elements of memtype instead of bytes; zero is always wrong.
  if (type_bytes * t->count > 0 && moved == 0) fail("a collective call moved nothing");
}

static inline struct seconds timed_transfer(const char* path, bool write,
                                            const struct transfer* t) {
  MPI_File file;
  int amode = write ? MPI_MODE_WRONLY | MPI_MODE_CREATE : MPI_MODE_RDONLY, rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) sync();
  meet();
  double opened = MPI_Wtime();
  check(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file), "open");
  check(MPI_File_set_view(file, t->displacement, t->etype, t->filetype, "native", MPI_INFO_NULL),
        "set_view");
  double started = MPI_Wtime();
  move_collectively(file, write, t);
  double ended = MPI_Wtime();
  check(MPI_File_close(&file), "close");
  double mine[2] = {MPI_Wtime() - opened, ended - started}, slowest[2];
  meet();
  MPI_Allreduce(mine, slowest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return (struct seconds){slowest[0], slowest[1]};
}

#endif
