// small_costs: the cost of small operations, one at a time, in nanoseconds per call.
//
// Every rank does the same at its own place of one file; local calls are timed by the slowest rank,
// collective ones by all. Each figure is the median of several rounds, because one interruption
// outweighs a thousand calls.
//
//     small_costs FILE [--calls N] [NAME ...]    the calls of these names, or all, at most N in a
//     round;
//                                                one JSON object per line

#include "measure.h"

#include <string.h>

enum { rounds = 15, most_calls = 2000 };

struct state {
  const char* path;
  int rank;
  MPI_File file;
  MPI_Datatype column;
  MPI_File strided;  // the ranks' doubles in turn
};

enum { many = 1024, some = 16 };
static double numbers[many];

static void open_file(struct state* s) {
  check(MPI_File_open(MPI_COMM_WORLD, s->path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                      &s->file),
        "open");
}

static void open_and_close(struct state* s) {
  MPI_File file;
  check(
      MPI_File_open(MPI_COMM_WORLD, s->path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
      "open");
  check(MPI_File_close(&file), "close");
}

static void set_view(struct state* s) {
  check(MPI_File_set_view(s->file, 8 * s->rank, MPI_BYTE, s->column, "native", MPI_INFO_NULL),
        "set_view");
}

static void write_at(struct state* s) {
  check(MPI_File_write_at(s->file, 8 * s->rank, &s->rank, 8, MPI_BYTE, MPI_STATUS_IGNORE),
        "write_at");
}

static void read_at(struct state* s) {
  long got;
  check(MPI_File_read_at(s->file, 8 * s->rank, &got, 8, MPI_BYTE, MPI_STATUS_IGNORE), "read_at");
}

static void seek(struct state* s) { check(MPI_File_seek(s->file, 8, MPI_SEEK_SET), "seek"); }

static void seek_and_ask(struct state* s) {
  MPI_Offset position;
  seek(s);
  check(MPI_File_get_position(s->file, &position), "get_position");
  if (position != 8) fail("get_position returned another position");
}

static void write_shared(struct state* s) {
  check(MPI_File_write_shared(s->file, &s->rank, 8, MPI_BYTE, MPI_STATUS_IGNORE), "write_shared");
}

static void iwrite_and_wait(struct state* s) {
  MPI_Request request;
  check(MPI_File_iwrite_at(s->file, 8 * s->rank, &s->rank, 8, MPI_BYTE, &request), "iwrite_at");
  check(MPI_Wait(&request, MPI_STATUS_IGNORE), "wait");
}

static void write_at_all(struct state* s) {
  check(MPI_File_write_at_all(s->file, 8 * s->rank, &s->rank, 8, MPI_BYTE, MPI_STATUS_IGNORE),
        "write_at_all");
}

static void write_strided(struct state* s, int count) {
  check(MPI_File_write_at(s->strided, 0, numbers, count, MPI_DOUBLE, MPI_STATUS_IGNORE),
        "strided write_at");
}

static void read_strided(struct state* s, int count) {
  check(MPI_File_read_at(s->strided, 0, numbers, count, MPI_DOUBLE, MPI_STATUS_IGNORE),
        "strided read_at");
}

static void write_some(struct state* s) { write_strided(s, some); }
static void read_some(struct state* s) { read_strided(s, some); }
static void write_many(struct state* s) { write_strided(s, many); }
static void read_many(struct state* s) { read_strided(s, many); }

static const struct {
  const char* name;
  void (*call)(struct state*);
  int calls;
} things[] = {
    {"open+close", open_and_close, 100},
    {"set_view", set_view, 200},
    {"write_at of 8 B", write_at, 2000},
    {"read_at of 8 B", read_at, 2000},
    {"seek", seek, 2000},
    {"seek + get_position", seek_and_ask, 2000},
    {"write_shared of 8 B", write_shared, 300},
    {"iwrite_at of 8 B + wait", iwrite_and_wait, 1000},
    {"write_at_all of 8 B", write_at_all, 300},
    {"strided write_at of 16 doubles", write_some, 1000},
    {"strided read_at of 16 doubles", read_some, 1000},
    {"strided write_at of 1024 doubles", write_many, 100},
    {"strided read_at of 1024 doubles", read_many, 100},
};

// Interleaved with the other ranks', in a file of its own.
static void open_strided(struct state* s) {
  char path[4096];
  int ranks;
  MPI_Datatype numbers_of_one;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  snprintf(path, sizeof path, "%s.strided", s->path);
  check(MPI_File_open(MPI_COMM_WORLD, path,
                      MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                      &s->strided),
        "open");
  MPI_Type_vector(many, 1, ranks, MPI_DOUBLE, &numbers_of_one);
  MPI_Type_commit(&numbers_of_one);
  check(MPI_File_set_view(s->strided, 8 * s->rank, MPI_DOUBLE, numbers_of_one, "native",
                          MPI_INFO_NULL),
        "set_view");
  MPI_Type_free(&numbers_of_one);
  write_many(s);
  meet();
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median_ns(struct state* s, void (*call)(struct state*), int calls) {
  double ns[rounds];
  for (int r = 0; r < rounds; ++r) {
    double mine, slowest;
    meet();
    // Many ranks on few cores leave the meeting milliseconds apart. The first collective calls wait
    // for the last rank, which is not their cost.
    for (int i = 0; i < 3; ++i) call(s);
    const double started = MPI_Wtime();
    for (int i = 0; i < calls; ++i) call(s);
    mine = MPI_Wtime() - started;
    // Ranks in the meeting wake to look for the others, and take the core from ranks that are still
    // in a timed call: the last one of 10 took 6 to 13 ms, with 16 ranks a core. In a collective
    // call more, they wait as in those that are timed.
    call(s);
    meet();
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    ns[r] = 1e9 * slowest / calls;
  }
  qsort(ns, rounds, sizeof ns[0], by_value);
  return ns[rounds / 2];
}

static bool wanted(const char* name, char** names) {
  if (!*names) return true;
  for (; *names; ++names)
    if (strcmp(*names, name) == 0) return true;
  return false;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 2) fail("usage: small_costs FILE [--calls N] [NAME ...]");
  int most = most_calls;
  char** names = argv + 2;
  if (argc > 3 && strcmp(argv[2], "--calls") == 0) {
    most = atoi(argv[3]);
    if (most < 1) fail("--calls must be at least 1");
    names += 2;
  }
  struct state s = {.path = argv[1]};
  MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
  MPI_Type_vector(4, 8, 64, MPI_BYTE, &s.column);
  MPI_Type_commit(&s.column);
  open_file(&s);
  open_strided(&s);
  for (size_t i = 0; i < sizeof things / sizeof things[0]; ++i) {
    if (!wanted(things[i].name, names)) continue;
    if (strcmp(things[i].name, "set_view") != 0)
      check(MPI_File_set_view(s.file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "set_view");
    const double ns =
        median_ns(&s, things[i].call, things[i].calls < most ? things[i].calls : most);
    if (s.rank == 0)
      printf("{\"program\":\"small_costs\",\"thing\":\"%s\",\"ns\":%.1f}\n", things[i].name, ns);
  }
  check(MPI_File_close(&s.strided), "close");
  check(MPI_File_close(&s.file), "close");
  if (s.rank == 0) unlink(s.path);
  MPI_Type_free(&s.column);
  MPI_Finalize();
  return 0;
}
