// columns: an array distributed by columns, written to and read from one shared file.
//
// The problem. A two-dimensional array is distributed over np processes by columns. In memory every
// process holds its columns as one contiguous block. In the file the array is stored row by row, so
// row r of the file is np pieces of --piece bytes, one per rank, and a rank's data are a
// strided pattern of small pieces:
//
//     file:   | rank 0 | rank 1 | ... | rank np-1 | rank 0 | rank 1 | ...
//             |<-piece>|                          |<- row 1 ...
//
// Three equivalent ways in MPI-IO:
//
//     UT   as on UNIX: seek and write, row by row, no file view
//     FV   a file view, then one independent call
//     COL  a file view, then one collective call
//
// Every 64-bit word holds a function of its own file offset. A file is therefore the same
// for any MPI, way or (for a size that divides) number of ranks that wrote it, and a reader can
// check every byte without a second copy. Filling and checking happen outside the timed part.
//
// This is an ordinary MPI program: it includes mpi.h and does not refer to Shima.

#define _GNU_SOURCE
#include <getopt.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum way { UT, FV, COL, WAYS };
enum op { WRITE, READ, OPS };

static const char* const way_names[WAYS] = {"UT", "FV", "COL"};
static const char* const op_names[OPS] = {"write", "read"};
static const double bytes_per_mib = 1024.0 * 1024.0;

struct options {
  bool ways[WAYS];
  bool ops[OPS];
  long size_mib;
  long piece_bytes;
  long repeat;
  bool sync_first;
  bool json;
  const char* path;
};

// One rank's share of the array.
struct share {
  int rank, np;
  int rows;
  int piece_words;
  int total_words;  // rows * piece_words
  uint64_t* words;
};

struct seconds {
  double open_to_close;
  double io;
};

static void fail(const char* what) {
  fprintf(stderr, "columns: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING], line[MPI_MAX_ERROR_STRING + 64];
  int length;
  MPI_Error_string(code, text, &length);
  snprintf(line, sizeof line, "%s: %s", call, text);
  fail(line);
}

// --- the data ---------------------------------------------------------------------------------

// Multiplying by an odd number is a bijection on 64-bit words: no two offsets share a value.
static inline uint64_t word_at(uint64_t file_offset) {
  return (file_offset / 8 + 1) * UINT64_C(0x9E3779B97F4A7C15);
}

static uint64_t piece_offset(const struct share* s, int row) {
  return ((uint64_t)row * (uint64_t)s->np + (uint64_t)s->rank) * (uint64_t)s->piece_words * 8;
}

static void fill(struct share* s) {
  uint64_t* word = s->words;
  for (int row = 0; row < s->rows; row++) {
    uint64_t offset = piece_offset(s, row);
    for (int i = 0; i < s->piece_words; i++) *word++ = word_at(offset + 8 * (uint64_t)i);
  }
}

static long count_wrong_words(const struct share* s) {
  const uint64_t* word = s->words;
  long wrong = 0;
  for (int row = 0; row < s->rows; row++) {
    uint64_t offset = piece_offset(s, row);
    for (int i = 0; i < s->piece_words; i++) wrong += *word++ != word_at(offset + 8 * (uint64_t)i);
  }
  return wrong;
}

// --- the three ways ---------------------------------------------------------------------------

static void check_full(MPI_Status* status, int expected_words) {
  int words;
  MPI_Get_count(status, MPI_UINT64_T, &words);
  if (words != expected_words) fail("a call moved fewer words than requested");
}

static void row_by_row(MPI_File file, enum op op, struct share* s) {
  MPI_Status status;
  for (int row = 0; row < s->rows; row++) {
    uint64_t* piece = s->words + (size_t)row * (size_t)s->piece_words;
    check(MPI_File_seek(file, (MPI_Offset)piece_offset(s, row), MPI_SEEK_SET), "MPI_File_seek");
    if (op == WRITE)
      check(MPI_File_write(file, piece, s->piece_words, MPI_UINT64_T, &status), "MPI_File_write");
    else
      check(MPI_File_read(file, piece, s->piece_words, MPI_UINT64_T, &status), "MPI_File_read");
    check_full(&status, s->piece_words);
  }
}

static void one_call(MPI_File file, enum way way, enum op op, struct share* s) {
  MPI_Status status;
  void* buffer = s->words;
  int count = s->total_words, code;
  if (way == COL)
    code = op == WRITE ? MPI_File_write_all(file, buffer, count, MPI_UINT64_T, &status)
                       : MPI_File_read_all(file, buffer, count, MPI_UINT64_T, &status);
  else
    code = op == WRITE ? MPI_File_write(file, buffer, count, MPI_UINT64_T, &status)
                       : MPI_File_read(file, buffer, count, MPI_UINT64_T, &status);
  check(code, "the data call");
  check_full(&status, count);
}

static void set_columns_view(MPI_File file, const struct share* s) {
  MPI_Datatype column;
  MPI_Type_vector(s->rows, s->piece_words, s->np * s->piece_words, MPI_UINT64_T, &column);
  MPI_Type_commit(&column);
  check(MPI_File_set_view(file, (MPI_Offset)piece_offset(s, 0), MPI_UINT64_T, column, "native",
                          MPI_INFO_NULL),
        "MPI_File_set_view");
  MPI_Type_free(&column);
}

// A barrier that sleeps. On a machine with fewer cores than ranks, an MPI barrier that spins would
// take cores from ranks that are in the timed part.
static void meet(void) {
  MPI_Request request;
  int done = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) usleep(50);
}

// One timed run. A user waits from open to close; the data calls are also timed alone, to separate
// the cost of opening and closing.
static struct seconds transfer(enum way way, enum op op, struct share* s, const char* path) {
  MPI_File file;
  int amode = op == WRITE ? MPI_MODE_WRONLY | MPI_MODE_CREATE : MPI_MODE_RDONLY;
  meet();
  double opened = MPI_Wtime();
  check(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file), "MPI_File_open");
  if (way != UT) set_columns_view(file, s);
  double started = MPI_Wtime();
  if (way == UT)
    row_by_row(file, op, s);
  else
    one_call(file, way, op, s);
  double ended = MPI_Wtime();
  check(MPI_File_close(&file), "MPI_File_close");
  double mine[2] = {MPI_Wtime() - opened, ended - started}, slowest[2];
  meet();
  MPI_Allreduce(mine, slowest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return (struct seconds){slowest[0], slowest[1]};
}

// --- one cell: prepare, time, check, report ---------------------------------------------------

static void prepare(enum op op, struct share* s, const struct options* o) {
  // A write creates a new file each time: overwriting cached pages is another experiment.
  if (op == WRITE && s->rank == 0) unlink(o->path);
  if (op == WRITE)
    fill(s);
  else
    memset(s->words, 0xA5, (size_t)s->total_words * 8);
  if (o->sync_first && s->rank == 0) sync();
}

static void report(enum way way, enum op op, const struct share* s, const struct options* o,
                   struct seconds t, long wrong_words) {
  double mib = (double)s->total_words * 8.0 * s->np / bytes_per_mib;
  if (o->json)
    printf(
        "{\"program\":\"columns\",\"way\":\"%s\",\"op\":\"%s\",\"np\":%d,\"mib\":%.3f,"
        "\"piece_bytes\":%ld,\"pieces\":%ld,\"open_close_s\":%.6f,\"io_s\":%.6f,"
        "\"open_close_mib_s\":%.1f,\"io_mib_s\":%.1f,\"wrong_words\":%ld}\n",
        way_names[way], op_names[op], s->np, mib, o->piece_bytes, (long)s->rows * s->np,
        t.open_to_close, t.io, mib / t.open_to_close, mib / t.io, wrong_words);
  else
    printf(
        "%-3s %-5s np %2d: %8.1f MiB/s from open to close, %8.1f MiB/s in the data "
        "calls%s\n",
        way_names[way], op_names[op], s->np, mib / t.open_to_close, mib / t.io,
        wrong_words ? "  WRONG DATA" : "");
  fflush(stdout);
}

static bool run_cell(enum way way, enum op op, struct share* s, const struct options* o) {
  prepare(op, s, o);
  struct seconds t = transfer(way, op, s, o->path);
  long mine = op == READ ? count_wrong_words(s) : 0, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (s->rank == 0) report(way, op, s, o, t, all);
  return all == 0;
}

// --- the command line -------------------------------------------------------------------------

static const char usage[] =
    "usage: columns [--way UT|FV|COL] [--op write|read|both] [--size-mib N] [--piece BYTES]\n"
    "               [--file PATH] [--sync-first] [--repeat K] [--json]\n"
    "Without --way all three run. --sync-first drains dirty pages before each timed part.";

static void choose(bool* chosen, int count, const char* const* names, const char* name) {
  for (int i = 0; i < count; i++)
    chosen[i] = strcmp(name, names[i]) == 0 || strcmp(name, "both") == 0;
  for (int i = 0; i < count; i++)
    if (chosen[i]) return;
  fail(usage);
}

static void set_option(struct options* o, const char* name, const char* value) {
  if (strcmp(name, "way") == 0)
    choose(o->ways, WAYS, way_names, value);
  else if (strcmp(name, "op") == 0)
    choose(o->ops, OPS, op_names, value);
  else if (strcmp(name, "size-mib") == 0)
    o->size_mib = atol(value);
  else if (strcmp(name, "piece") == 0)
    o->piece_bytes = atol(value);
  else if (strcmp(name, "repeat") == 0)
    o->repeat = atol(value);
  else if (strcmp(name, "file") == 0)
    o->path = value;
  else if (strcmp(name, "sync-first") == 0)
    o->sync_first = true;
  else if (strcmp(name, "json") == 0)
    o->json = true;
}

static struct options parse(int argc, char** argv) {
  static const struct option table[] = {{"way", required_argument, 0, 1},
                                        {"op", required_argument, 0, 1},
                                        {"size-mib", required_argument, 0, 1},
                                        {"piece", required_argument, 0, 1},
                                        {"file", required_argument, 0, 1},
                                        {"repeat", required_argument, 0, 1},
                                        {"sync-first", no_argument, 0, 1},
                                        {"json", no_argument, 0, 1},
                                        {0, 0, 0, 0}};
  struct options o = {{true, true, true}, {true, true}, 1024, 16384, 1, false, false,
                      "columns.dat"};
  int index;
  for (int c; (c = getopt_long(argc, argv, "", table, &index)) != -1;) {
    if (c != 1) fail(usage);
    set_option(&o, table[index].name, optarg);
  }
  if (optind != argc || o.size_mib < 1 || o.piece_bytes < 8 || o.piece_bytes % 8 || o.repeat < 1)
    fail(usage);
  return o;
}

static struct share take_share(const struct options* o) {
  struct share s = {0};
  MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &s.np);
  long rows = o->size_mib * 1024 * 1024 / (o->piece_bytes * s.np);
  long piece_words = o->piece_bytes / 8;
  if (rows < 1 || rows * piece_words > INT32_MAX || s.np * piece_words > INT32_MAX)
    fail("--size-mib must hold at least one row, and at most 2^31 words a rank");
  s.rows = (int)rows;
  s.piece_words = (int)piece_words;
  s.total_words = (int)(rows * piece_words);
  s.words = malloc((size_t)s.total_words * 8);
  if (!s.words) fail("out of memory");
  return s;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  struct options o = parse(argc, argv);
  struct share s = take_share(&o);
  bool right = true;
  for (int way = 0; way < WAYS; way++)
    for (int op = 0; op < OPS; op++)
      for (long k = 0; k < o.repeat; k++)
        if (o.ways[way] && o.ops[op]) right &= run_cell((enum way)way, (enum op)op, &s, &o);
  free(s.words);
  MPI_Finalize();
  return right ? 0 : 1;
}
