// subarray: an array of elements, distributed in blocks over a grid of ranks.
//
// The most common way scientific programs use MPI-IO. Every rank holds one block of the array
// contiguously; in the file the array is stored in C or in Fortran order. The file type is the
// block as an MPI_Type_create_subarray of the array, and one collective call moves everything. In
// the file a rank's data are runs of the dimensions that vary fastest.
//
//     subarray write|read|plain-write|plain-read PATH c|fortran WORDS DIMS GRID
//
// An element has WORDS words of 8 bytes. DIMS and GRID are numbers joined by x, as 32x32x32x64; an
// extent 0 of the grid is chosen by MPI_Dims_create. The plain operations move the same amount by
// one contiguous pwrite or pread a rank, without MPI-IO. Reads check every word. The file is the
// same for any number of ranks and for the plain operations.

#include "measure.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { most_dims = 8, word_bytes = 8 };

// Dimensions are ordered from the slowest to the fastest.
struct block {
  int dims, words;
  int whole[most_dims], size[most_dims], start[most_dims];  // in elements
  long count, whole_count;
  uint64_t* data;
};

static int parse_extents(const char* text, bool reverse, int* extents) {
  int count = 0;
  char* end = (char*)text;
  for (bool more = true; more && count < most_dims; text = end + 1) {
    extents[count++] = (int)strtol(text, &end, 10);
    more = *end == 'x';
  }
  if (*end != 0) fail("dimensions are up to 8 numbers joined by x");
  for (int i = 0; reverse && i < count / 2; ++i) {
    const int swapped = extents[i];
    extents[i] = extents[count - 1 - i];
    extents[count - 1 - i] = swapped;
  }
  return count;
}

static void place_block(struct block* b, int* grid, int rank, int np) {
  int ranks = 1;
  MPI_Dims_create(np, b->dims, grid);
  b->count = b->whole_count = 1;
  for (int d = b->dims - 1; d >= 0; --d) {
    const int place = rank / ranks % grid[d];
    ranks *= grid[d];
    b->start[d] = (int)((long)b->whole[d] * place / grid[d]);
    b->size[d] = (int)((long)b->whole[d] * (place + 1) / grid[d]) - b->start[d];
    b->count *= b->size[d];
    b->whole_count *= b->whole[d];
  }
  if (ranks != np) fail("the grid has another number of ranks");
  b->data = malloc((size_t)(b->count * b->words) * word_bytes);
  if (!b->data || b->count == 0) fail("a rank's block is empty or does not fit into memory");
}

// The offset in the file of a row of the block: `row` counts the rows in memory order.
static uint64_t row_offset(const struct block* b, long row) {
  uint64_t element = 0, scale = 1;
  for (int d = b->dims - 1; d >= 0; --d) {
    const bool fastest = d == b->dims - 1;
    const long index = fastest ? 0 : row % b->size[d];
    if (!fastest) row /= b->size[d];
    element += (uint64_t)(b->start[d] + index) * scale;
    scale *= (uint64_t)b->whole[d];
  }
  return element * (uint64_t)b->words * word_bytes;
}

// Fills words with the bytes of the file from `offset` on, or counts the words that differ.
static long walk_words(uint64_t* words, long count, uint64_t offset, bool fill) {
  long wrong = 0;
  for (long i = 0; i < count; ++i, offset += word_bytes) {
    if (fill)
      words[i] = word_at(offset);
    else
      wrong += words[i] != word_at(offset);
  }
  return wrong;
}

static long walk_block(const struct block* b, bool fill) {
  const long row_words = (long)b->size[b->dims - 1] * b->words;
  const long rows = b->count * b->words / row_words;
  long wrong = 0;
  for (long row = 0; row < rows; ++row)
    wrong += walk_words(b->data + row * row_words, row_words, row_offset(b, row), fill);
  return wrong;
}

static struct seconds move_block(const struct block* b, const char* path, bool fortran,
                                 bool write) {
  int whole[most_dims], size[most_dims], start[most_dims];
  for (int d = 0; d < b->dims; ++d) {
    const int from = fortran ? b->dims - 1 - d : d;
    whole[d] = b->whole[from], size[d] = b->size[from], start[d] = b->start[from];
  }
  MPI_Datatype element, filetype;
  MPI_Type_contiguous(b->words, MPI_DOUBLE, &element);
  MPI_Type_commit(&element);
  MPI_Type_create_subarray(b->dims, whole, size, start, fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C,
                           element, &filetype);
  MPI_Type_commit(&filetype);
  const struct transfer t = {0, element, filetype, element, b->data, (int)b->count};
  const struct seconds s = timed_transfer(path, write, &t);
  MPI_Type_free(&filetype);
  MPI_Type_free(&element);
  return s;
}

static double monotonic_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Moves `bytes` at `offset` by contiguous calls; the blocks of all ranks are consecutive. The time
// is that from the first rank's open to the last one's close, because no rank waits for another.
static struct seconds move_plainly(const char* path, bool write, void* data, size_t bytes,
                                   uint64_t offset) {
  meet();
  const double opened = monotonic_s();
  const int fd = open(path, write ? O_WRONLY | O_CREAT : O_RDONLY, 0666);
  for (size_t done = 0; done < bytes;) {
    char* const at = (char*)data + done;
    const ssize_t n = write ? pwrite(fd, at, bytes - done, (off_t)(offset + done))
                            : pread(fd, at, bytes - done, (off_t)(offset + done));
    if (n <= 0) fail("a plain read or write moved nothing");
    done += (size_t)n;
  }
  close(fd);
  const double closed = monotonic_s();
  double first, last;
  meet();
  MPI_Allreduce(&opened, &first, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&closed, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return (struct seconds){last - first, last - first};
}

static void report(const char* op, const struct block* b, int np, struct seconds t, long wrong) {
  const double mib = (double)b->whole_count * b->words * word_bytes / (1 << 20);
  printf(
      "{\"program\":\"subarray\",\"op\":\"%s\",\"np\":%d,\"mib\":%.3f,\"open_close_s\":%.6f,"
      "\"io_s\":%.6f,\"open_close_mib_s\":%.1f,\"io_mib_s\":%.1f,\"wrong_words\":%ld}\n",
      op, np, mib, t.open_to_close, t.io, mib / t.open_to_close, mib / t.io, wrong);
  fflush(stdout);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, np, grid[most_dims];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &np);
  if (argc != 7)
    fail("usage: subarray write|read|plain-write|plain-read PATH c|fortran WORDS DIMS GRID");
  const char *op = argv[1], *path = argv[2];
  const bool fortran = strcmp(argv[3], "fortran") == 0;
  const bool plain = strncmp(op, "plain-", 6) == 0;
  const bool write = strcmp(plain ? op + 6 : op, "write") == 0;
  struct block b = {.words = atoi(argv[4])};
  b.dims = parse_extents(argv[5], fortran, b.whole);
  if (parse_extents(argv[6], fortran, grid) != b.dims) fail("the grid has other dimensions");
  place_block(&b, grid, rank, np);
  const long words = b.count * b.words;
  long words_before = 0;
  MPI_Exscan(&words, &words_before, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) words_before = 0;
  const uint64_t plain_offset = (uint64_t)words_before * word_bytes;
  const size_t bytes = (size_t)words * word_bytes;

  memset(b.data, 0xA5, bytes);
  if (write && plain) walk_words(b.data, words, plain_offset, true);
  if (write && !plain) walk_block(&b, true);
  if (write && rank == 0) unlink(path);
  const struct seconds s = plain ? move_plainly(path, write, b.data, bytes, plain_offset)
                                 : move_block(&b, path, fortran, write);
  long wrong = 0;
  if (!write)
    wrong = plain ? walk_words(b.data, words, plain_offset, false) : walk_block(&b, false);
  wrong = sum_over_ranks(wrong);
  if (rank == 0) report(op, &b, np, s, wrong);
  free(b.data);
  MPI_Finalize();
  return wrong ? 1 : 0;
}
