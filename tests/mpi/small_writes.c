// RANKS: 2 4 7
// Collective writes of few bytes in several pieces, which one rank makes for all, and other writes
// in the same calls; compared with a model of the file. A failed write is an error of all ranks.
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "mpi_check.h"

enum { rounds = 60, file_bytes = 400 * 1000, most_pieces = 80, unit_bytes = 100 };

static unsigned char model[file_bytes];

static unsigned random_below(unsigned* state, unsigned limit) {
  *state = *state * 1664525U + 1013904223U;
  return (*state >> 8) % limit;
}

// Pieces of a rank in one round; ranks have units of the file in turn, so no two overlap.
struct access {
  int count;
  int places[most_pieces], lens[most_pieces];
};

static struct access access_of(int round, int rank) {
  unsigned state = (unsigned)(round * 1000 + rank);
  struct access made = {.count = 0};
  // Nothing, one piece, several small ones (often), or more bytes than one rank writes for others.
  const unsigned kind = random_below(&state, 6);
  if (kind == 0) return made;
  const int wanted = kind == 1 ? 1 : 2 + (int)random_below(&state, most_pieces - 2);
  const int units = kind == 5 ? 40 : 1;
  int unit = (int)random_below(&state, 5);
  for (int i = 0; i < wanted; ++i) {
    const int place = (unit * ranks + rank) * unit_bytes * units;
    const int len = 1 + (int)random_below(&state, (unsigned)(unit_bytes * units));
    if (place + len > file_bytes) break;
    made.places[made.count] = place;
    made.lens[made.count++] = len;
    unit += 1 + (int)random_below(&state, 2);
  }
  return made;
}

static unsigned char byte_of(int round, int place) {
  return (unsigned char)(value_at(place) + round);
}

static int bytes_of(const struct access* access) {
  int bytes = 0;
  for (int i = 0; i < access->count; ++i) bytes += access->lens[i];
  return bytes;
}

static int write_all(MPI_File file, int round) {
  static unsigned char data[file_bytes];
  struct access own = access_of(round, here);
  unsigned char* at = data;
  for (int i = 0; i < own.count; ++i)
    for (int k = 0; k < own.lens[i]; ++k) *at++ = byte_of(round, own.places[i] + k);
  MPI_Datatype view;
  MPI_Type_indexed(own.count, own.lens, own.places, MPI_BYTE, &view);
  MPI_Type_commit(&view);
  MPI_Status status;
  int moved = 0;
  // A file type without bytes is refused.
  CHECK(MPI_File_set_view(file, 0, MPI_BYTE, own.count == 0 ? MPI_BYTE : view, "native",
                          MPI_INFO_NULL));
  const int code = MPI_File_write_at_all(file, 0, data, bytes_of(&own), MPI_BYTE, &status);
  if (code == MPI_SUCCESS) {
    MPI_Get_count(&status, MPI_BYTE, &moved);
    REQUIRE(moved == bytes_of(&own));
  }
  MPI_Type_free(&view);
  return code;
}

static void note(int round) {
  for (int rank = 0; rank < ranks; ++rank) {
    const struct access access = access_of(round, rank);
    for (int i = 0; i < access.count; ++i)
      for (int k = 0; k < access.lens[i]; ++k)
        model[access.places[i] + k] = byte_of(round, access.places[i] + k);
  }
}

static void check_contents(const char* path) {
  long long size = 0;
  unsigned char* bytes = contents_of(path, &size);
  REQUIRE(size <= file_bytes && memcmp(bytes, model, (size_t)size) == 0);
  for (long long i = size; i < file_bytes; ++i) REQUIRE(model[i] == 0);
  free(bytes);
}

// The pieces of all ranks lie beyond the limit that some have, so the write fails on the one that
// makes it, if it is one of these.
static void fail_together(MPI_File file, bool is_limited) {
  struct rlimit limit, before;
  const int lens[2] = {10, 10}, places[2] = {here * 20, (ranks + here) * 20};
  char data[20] = {0};
  MPI_Datatype view;
  MPI_Type_indexed(2, lens, places, MPI_BYTE, &view);
  MPI_Type_commit(&view);
  CHECK(MPI_File_set_view(file, 2 * file_bytes, MPI_BYTE, view, "native", MPI_INFO_NULL));
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &before);
  limit = before;
  if (is_limited) limit.rlim_cur = file_bytes;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  const int class = class_of(MPI_File_write_at_all(file, 0, data, 20, MPI_BYTE, MPI_STATUS_IGNORE));
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  int lowest = 0, highest = 0;
  MPI_Allreduce(&class, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&class, &highest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  REQUIRE(lowest == highest && lowest != MPI_SUCCESS);
  CHECK(MPI_File_write_at_all(file, 0, data, 20, MPI_BYTE, MPI_STATUS_IGNORE));
  MPI_Type_free(&view);
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  const char* path = "small_writes.bin";
  MPI_File file;
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
  for (int round = 0; round < rounds; ++round) {
    CHECK(write_all(file, round));
    note(round);
  }
  CHECK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  if (here == 0) check_contents(path);
  MPI_Barrier(MPI_COMM_WORLD);
  // Ranks of the last host only, if there are several.
  const int hosts = argc > 1 ? atoi(argv[1]) : 1;
  fail_together(file, here >= ranks - ranks / hosts);
  CHECK(MPI_File_close(&file));
  return end_test();
}
