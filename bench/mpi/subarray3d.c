// subarray3d: a cube of doubles, distributed in blocks over a three-dimensional grid of ranks.
//
// The most common way scientific programs use MPI-IO. Every rank holds one block of the n x n x n
// cube contiguously; in the file the cube is stored in row order. The file type is the block as an
// MPI_Type_create_subarray of the cube, and one collective call moves everything. In the file a
// rank's data are runs of one row of its block: n / (grid width) doubles each.
//
// Writes, then reads back and checks every double. The file is the same for any number of ranks.

#include "measure.h"

#include <string.h>
#include <unistd.h>

struct block {
  int cube[3], size[3], start[3];  // in doubles; the last dimension is contiguous
  int count;
  uint64_t* words;
};

static struct block take_block(int n, int rank, int np) {
  struct block b = {.count = 1};
  int grid[3] = {0, 0, 0};
  MPI_Dims_create(np, 3, grid);
  int place[3] = {rank / (grid[1] * grid[2]), rank / grid[2] % grid[1], rank % grid[2]};
  for (int d = 0; d < 3; d++) {
    b.cube[d] = n;
    b.start[d] = (int)((long)n * place[d] / grid[d]);
    b.size[d] = (int)((long)n * (place[d] + 1) / grid[d]) - b.start[d];
    b.count *= b.size[d];
  }
  b.words = malloc((size_t)b.count * 8);
  if (!b.words || b.count == 0) fail("a rank's block is empty or does not fit into memory");
  return b;
}

static uint64_t row_offset(const struct block* b, int i, int j) {
  uint64_t n = (uint64_t)b->cube[0];
  uint64_t row = (uint64_t)(b->start[0] + i) * n + (uint64_t)(b->start[1] + j);
  return (row * n + (uint64_t)b->start[2]) * 8;
}

// Walks the block in memory order; fills it, or counts the words that are wrong.
static long walk(const struct block* b, bool fill) {
  uint64_t* word = b->words;
  long wrong = 0;
  for (int i = 0; i < b->size[0]; i++)
    for (int j = 0; j < b->size[1]; j++) {
      uint64_t offset = row_offset(b, i, j);
      for (int k = 0; k < b->size[2]; k++, word++, offset += 8)
        if (fill)
          *word = word_at(offset);
        else
          wrong += *word != word_at(offset);
    }
  return wrong;
}

static void report(const char* op, int n, int np, struct seconds t, long wrong) {
  double mib = (double)n * n * n * 8.0 / (1 << 20);
  printf(
      "{\"program\":\"subarray3d\",\"op\":\"%s\",\"np\":%d,\"n\":%d,\"mib\":%.3f,"
      "\"open_close_s\":%.6f,\"io_s\":%.6f,\"open_close_mib_s\":%.1f,\"io_mib_s\":%.1f,"
      "\"wrong_words\":%ld}\n",
      op, np, n, mib, t.open_to_close, t.io, mib / t.open_to_close, mib / t.io, wrong);
  fflush(stdout);
}

static long run(const char* op, const char* path, int n, int rank, int np) {
  struct block b = take_block(n, rank, np);
  bool write = strcmp(op, "write") == 0;
  MPI_Datatype filetype;
  MPI_Type_create_subarray(3, b.cube, b.size, b.start, MPI_ORDER_C, MPI_DOUBLE, &filetype);
  MPI_Type_commit(&filetype);
  if (write && rank == 0) unlink(path);
  if (write)
    walk(&b, true);
  else
    memset(b.words, 0xA5, (size_t)b.count * 8);
  struct transfer t = {0, MPI_DOUBLE, filetype, MPI_DOUBLE, b.words, b.count};
  struct seconds s = timed_transfer(path, write, &t);
  long wrong = sum_over_ranks(write ? 0 : walk(&b, false));
  if (rank == 0) report(op, n, np, s, wrong);
  MPI_Type_free(&filetype);
  free(b.words);
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, np;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  if (argc != 4) fail("usage: subarray3d write|read|both PATH N");
  long wrong = 0;
  const char* op = argv[1];
  if (strcmp(op, "read") != 0) wrong += run("write", argv[2], atoi(argv[3]), rank, np);
  if (strcmp(op, "write") != 0) wrong += run("read", argv[2], atoi(argv[3]), rank, np);
  MPI_Finalize();
  return wrong ? 1 : 0;
}
