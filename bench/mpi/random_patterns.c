// random_patterns: random file types and random memory types, written, read back, all checked.
//
// Measures layouts that no implementation is tuned for. For each seed the ranks draw one
// distribution of a file, and each rank draws a layout of its memory. They write everything with
// one collective call, and read it back with another. Three checks, all outside the timed parts:
// the bytes read are the expected ones; the file, read with plain pread, contains every rank's
// data; and the holes between are still zero. Data in a hole is reported but is no failure by
// itself: MPI leaves bytes between writes in a new file undefined, and some implementations write
// stale memory there.

#include "random_patterns.h"
#include "measure.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { tiles_multiple = 64 };  // the memtype holds a divisor of this many units

struct job {
  const char* path;
  int rank, np;
  uint64_t seed;
  struct pattern pattern;
  struct memory memory;
  long tiles;
  unsigned char* buffer;
  long buffer_bytes;
};

// --- the buffer, walked piece by piece in step with the file ----------------------------------

// The place of the next unit: a position in a list of pieces that repeats every period_units.
struct walker {
  const struct pieces* pieces;
  long period_units, base, piece, within;
};

static long run_left(const struct walker* w) {
  return w->pieces->list[w->piece].length - w->within;
}

static long unit_offset(const struct walker* w) {
  return w->base + w->pieces->list[w->piece].offset + w->within;
}

static void advance(struct walker* w, long units) {
  w->within += units;
  if (run_left(w) > 0) return;
  w->within = 0;
  if (++w->piece == w->pieces->count) {
    w->piece = 0;
    w->base += w->period_units;
  }
}

// Fills the buffer with the bytes for the file, or counts the bytes that differ from them.
static long walk(const struct job* j, bool fill) {
  const struct pieces* mine = &j->pattern.owned[j->rank];
  struct walker file = {mine, j->pattern.tile_units, 0, 0, 0};
  struct walker memory = {&j->memory.pieces, j->memory.extent_units, 0, 0, 0};
  long unit_bytes = j->pattern.unit.bytes, wrong = 0;
  for (long left = mine->units * j->tiles; left > 0;) {
    long units = run_left(&file) < run_left(&memory) ? run_left(&file) : run_left(&memory);
    unsigned char* at = j->buffer + unit_offset(&memory) * unit_bytes;
    uint64_t offset = (uint64_t)(unit_offset(&file) * unit_bytes);
    for (long i = 0; i < units * unit_bytes; i++)
      if (fill)
        at[i] = byte_at(offset + (uint64_t)i);
      else
        wrong += at[i] != byte_at(offset + (uint64_t)i);
    advance(&file, units);
    advance(&memory, units);
    left -= units;
  }
  return wrong;
}

// --- the file, checked without MPI-IO ---------------------------------------------------------

// One tile, byte by unit: 1 if a rank owns it. Two owners would be an error of this program.
static unsigned char* covered_units(const struct pattern* p, int np) {
  unsigned char* covered = calloc((size_t)p->tile_units, 1);
  for (int r = 0; r < np; r++)
    for (long i = 0; i < p->owned[r].count; i++)
      for (long u = 0; u < p->owned[r].list[i].length; u++)
        if (covered[p->owned[r].list[i].offset + u]++) fail("the pattern overlaps itself");
  return covered;
}

struct wrong {
  long data_bytes, hole_bytes;
};

static struct wrong wrong_in_tile(const struct pattern* p, const unsigned char* covered,
                                  const unsigned char* tile, long bytes, uint64_t offset) {
  struct wrong wrong = {0, 0};
  for (long i = 0; i < bytes; i++)
    if (covered[i / p->unit.bytes])
      wrong.data_bytes += tile[i] != byte_at(offset + (uint64_t)i);
    else
      wrong.hole_bytes += tile[i] != 0;
  return wrong;
}

// Every rank checks every np-th tile. The file may end early where the last tile ends in a hole.
static struct wrong wrong_in_file(const struct job* j) {
  const struct pattern* p = &j->pattern;
  unsigned char* covered = covered_units(p, j->np);
  long tile_bytes = p->tile_units * p->unit.bytes;
  unsigned char* tile = malloc((size_t)tile_bytes);
  struct wrong wrong = {0, 0};
  int fd = open(j->path, O_RDONLY);
  for (long t = j->rank; t < j->tiles; t += j->np) {
    memset(tile, 0, (size_t)tile_bytes);
    for (long done = 0, n = 1; n > 0 && done < tile_bytes; done += n)
      n = pread(fd, tile + done, (size_t)(tile_bytes - done), t * tile_bytes + done);
    struct wrong here = wrong_in_tile(p, covered, tile, tile_bytes, (uint64_t)(t * tile_bytes));
    wrong.data_bytes += here.data_bytes;
    wrong.hole_bytes += here.hole_bytes;
  }
  close(fd);
  free(tile);
  free(covered);
  return (struct wrong){sum_over_ranks(wrong.data_bytes), sum_over_ranks(wrong.hole_bytes)};
}

// --- one pattern ------------------------------------------------------------------------------

static void report(const struct job* j, const char* op, struct seconds s, double mib, long pieces,
                   struct wrong wrong) {
  if (j->rank != 0) return;
  const struct pattern* p = &j->pattern;
  printf(
      "{\"program\":\"random_patterns\",\"seed\":%lu,\"op\":\"%s\",\"np\":%d,"
      "\"kind\":\"%s\",\"memory\":\"%s\",\"unit_bytes\":%ld,\"tiles\":%ld,\"pieces\":%ld,"
      "\"mean_piece_bytes\":%.1f,\"mib\":%.3f,\"open_close_s\":%.6f,\"io_s\":%.6f,"
      "\"open_close_mib_s\":%.1f,\"io_mib_s\":%.1f,\"wrong_bytes\":%ld,"
      "\"hole_bytes_written\":%ld}\n",
      (unsigned long)j->seed, op, j->np, p->kind, j->memory.kind, p->unit.bytes, j->tiles, pieces,
      mib * (1 << 20) / (double)pieces, mib, s.open_to_close, s.io, mib / s.open_to_close,
      mib / s.io, wrong.data_bytes, wrong.hole_bytes);
  fflush(stdout);
}

static long write_and_read(struct job* j) {
  const struct pieces* mine = &j->pattern.owned[j->rank];
  long units = mine->units * j->tiles;
  double mib = (double)sum_over_ranks(units) * (double)j->pattern.unit.bytes / (1 << 20);
  long pieces = sum_over_ranks(mine->count * j->tiles);
  struct transfer t = {0,
                       j->pattern.unit.type,
                       j->pattern.filetype,
                       j->memory.type,
                       j->buffer,
                       (int)(units / j->memory.data_units)};
  if (j->rank == 0) unlink(j->path);
  memset(j->buffer, 0, (size_t)j->buffer_bytes);
  walk(j, true);
  struct seconds s = timed_transfer(j->path, true, &t);
  struct wrong written = wrong_in_file(j);
  report(j, "write", s, mib, pieces, written);
  memset(j->buffer, 0xA5, (size_t)j->buffer_bytes);
  s = timed_transfer(j->path, false, &t);
  struct wrong read = {sum_over_ranks(walk(j, false)), 0};
  report(j, "read", s, mib, pieces, read);
  return written.data_bytes + read.data_bytes;
}

static long run(struct job* j, long size_mib, int kind) {
  struct dice shared = {j->seed};
  j->pattern = draw_pattern(&shared, kind, j->rank, j->np);
  struct dice own = {j->seed * 1000003 + (uint64_t)j->rank + 1};
  long data_units = 1L << roll_between(&own, 1, 6);  // up to tiles_multiple
  int memory_kind = (int)roll_between(&own, 0, memory_kinds - 1);
  if (memory_kind == 0) data_units = tiles_multiple;
  j->memory = draw_memory(&own, memory_kind, j->pattern.unit, data_units);
  long tile_bytes = j->pattern.tile_units * j->pattern.unit.bytes;
  j->tiles = (size_mib * (1 << 20) / tile_bytes / tiles_multiple + 1) * tiles_multiple;
  long types = j->pattern.owned[j->rank].units * j->tiles / j->memory.data_units;
  j->buffer_bytes = types * j->memory.extent_units * j->pattern.unit.bytes;
  j->buffer = malloc((size_t)j->buffer_bytes);
  if (!j->buffer) fail("out of memory");
  long wrong = write_and_read(j);
  free(j->buffer);
  free_memory(&j->memory);
  free_pattern(&j->pattern, j->np);
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 5) fail("usage: random_patterns PATH FIRST_SEED PATTERNS SIZE_MIB");
  struct job j = {.path = argv[1]};
  MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &j.np);
  long wrong = 0;
  for (int i = 0; i < atoi(argv[3]); i++) {
    j.seed = (uint64_t)atol(argv[2]) + (uint64_t)i;
    wrong += run(&j, atol(argv[4]), (int)(j.seed % pattern_kinds));
  }
  MPI_Finalize();
  return wrong ? 1 : 0;
}
