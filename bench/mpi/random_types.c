// random_types: draws the file and memory types of random_patterns.
//
// Five families of file type, each a construction that real programs use:
//
//     nested vectors   runs within groups within the tile, ranks interleaved at the innermost level
//     indexed          the tile cut into chunks of random length, each given to a random rank
//     indexed blocks   the same with chunks of one length
//     subarray         a block of a random three-dimensional array, C or Fortran order
//     struct           zones of different kinds: contiguous, strided, indexed
//
// No two ranks own the same unit. Holes, which no rank owns or may write, are between groups,
// chunks or zones. Each family adds the same pieces to its list that it passes to MPI; the caller
// checks the lists for overlap.

#include "random_patterns.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void add_piece(struct pieces* p, long offset, long length) {
  if (p->count == p->capacity) {
    p->capacity = p->capacity ? 2 * p->capacity : 64;
    p->list = realloc(p->list, (size_t)p->capacity * sizeof *p->list);
  }
  p->list[p->count++] = (struct piece){offset, length};
  p->units += length;
}

uint64_t roll(struct dice* d) {
  uint64_t x = d->state += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
}

long roll_between(struct dice* d, long low, long high) {
  return low + (long)(roll(d) % (uint64_t)(high - low + 1));
}

long roll_size(struct dice* d, long low, long high) {
  int doublings = 0;
  while (low << (doublings + 1) <= high) doublings++;
  long top = low << roll_between(d, 0, doublings);
  return roll_between(d, top, 2 * top - 1 < high ? 2 * top - 1 : high);
}

static MPI_Datatype resized(MPI_Datatype type, MPI_Aint extent_bytes) {
  MPI_Datatype result;
  MPI_Type_create_resized(type, 0, extent_bytes, &result);
  MPI_Type_free(&type);
  return result;
}

// --- the file types ---------------------------------------------------------------------------
// Each returns the rank's type for one tile (extent not yet set) and fills in tile_units, owned.

static MPI_Datatype nested_vectors(struct dice* d, struct pattern* p, int rank, int np) {
  long run = roll_size(d, 8 / p->unit.bytes + 1, 16384 / p->unit.bytes);
  long runs = roll_between(d, 2, 12), groups = roll_between(d, 2, 10);
  long hole = roll_between(d, 0, 1) ? roll_between(d, 1, run) : 0;
  long stride = run * np, group = runs * stride + hole;
  p->tile_units = groups * group;
  for (int r = 0; r < np; r++)
    for (long g = 0; g < groups; g++)
      for (long i = 0; i < runs; i++)
        add_piece(&p->owned[r], g * group + i * stride + r * run, run);
  MPI_Datatype inner, outer, shifted;
  MPI_Type_vector((int)runs, (int)run, (int)stride, p->unit.type, &inner);
  MPI_Type_create_hvector((int)groups, 1, group * p->unit.bytes, inner, &outer);
  int one = 1;
  MPI_Aint at = rank * run * p->unit.bytes;
  MPI_Type_create_hindexed(1, &one, &at, outer, &shifted);
  MPI_Type_free(&inner);
  MPI_Type_free(&outer);
  return shifted;
}

// Distributes [start, start + chunks) at random; one chunk in ten stays a hole.
static long deal_chunks(struct dice* d, struct pattern* p, int np, long start, long low,
                        long high) {
  long chunks = roll_between(d, 4, 40) * np, at = start;
  for (long c = 0; c < chunks; c++) {
    long length = low == high ? low : roll_size(d, low, high);
    bool hole = roll(d) % 10 == 0;
    int owner = c < np ? (int)c : (int)(roll(d) % (uint64_t)np);  // every rank gets at least one
    if (!hole || c < np) add_piece(&p->owned[owner], at, length);
    at += length;
  }
  return at;
}

static MPI_Datatype indexed_type(const struct pieces* mine, long first, struct unit unit) {
  long count = mine->count - first;
  int* lengths = malloc((size_t)count * sizeof *lengths);
  MPI_Aint* at = malloc((size_t)count * sizeof *at);
  for (long i = 0; i < count; i++) {
    lengths[i] = (int)mine->list[first + i].length;
    at[i] = mine->list[first + i].offset * unit.bytes;
  }
  MPI_Datatype type;
  MPI_Type_create_hindexed((int)count, lengths, at, unit.type, &type);
  free(lengths);
  free(at);
  return type;
}

static MPI_Datatype indexed(struct dice* d, struct pattern* p, int rank, int np) {
  p->tile_units = deal_chunks(d, p, np, 0, 1, 16384 / p->unit.bytes);
  return indexed_type(&p->owned[rank], 0, p->unit);
}

static MPI_Datatype indexed_blocks(struct dice* d, struct pattern* p, int rank, int np) {
  long length = roll_size(d, 32 / p->unit.bytes, 8192 / p->unit.bytes);
  p->tile_units = deal_chunks(d, p, np, 0, length, length);
  const struct pieces* mine = &p->owned[rank];
  int* at = malloc((size_t)mine->count * sizeof *at);
  for (long i = 0; i < mine->count; i++) at[i] = (int)mine->list[i].offset;
  MPI_Datatype type;
  MPI_Type_create_indexed_block((int)mine->count, (int)length, at, p->unit.type, &type);
  free(at);
  return type;
}

static void own_block(struct pieces* owned, const int* size, const int* sub, const int* start) {
  for (int i = 0; i < sub[0]; i++)
    for (int j = 0; j < sub[1]; j++) {
      long row = (long)(start[0] + i) * size[1] + start[1] + j;
      add_piece(owned, row * size[2] + start[2], sub[2]);
    }
}

static MPI_Datatype subarray(struct dice* d, struct pattern* p, int rank, int np) {
  int grid[3] = {0, 0, 0}, size[3], sub[3], start[3];
  MPI_Dims_create(np, 3, grid);
  for (int i = 0; i < 3; i++) size[i] = grid[i] * (int)roll_size(d, 4, i == 2 ? 512 : 32);
  p->tile_units = (long)size[0] * size[1] * size[2];
  bool fortran = roll(d) % 2;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  for (int r = 0; r < np; r++) {
    int place[3] = {r / (grid[1] * grid[2]), r / grid[2] % grid[1], r % grid[2]};
    for (int i = 0; i < 3; i++) start[i] = place[i] * (sub[i] = size[i] / grid[i]);
    own_block(&p->owned[r], size, sub, start);
    if (r != rank) continue;
    // The same block in the other order: dimensions reversed.
    int s[3] = {size[2], size[1], size[0]}, b[3] = {sub[2], sub[1], sub[0]};
    int o[3] = {start[2], start[1], start[0]};
    MPI_Type_create_subarray(3, fortran ? s : size, fortran ? b : sub, fortran ? o : start,
                             fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C, p->unit.type, &type);
  }
  return type;
}

static MPI_Datatype structure(struct dice* d, struct pattern* p, int rank, int np) {
  long block = roll_size(d, 1, 4096), run = roll_size(d, 1, 512), runs = roll_between(d, 4, 64);
  long strided = block * np + roll_between(d, 0, 64);
  long dealt = strided + runs * run * np + roll_between(d, 0, 64);
  for (int r = 0; r < np; r++) {
    add_piece(&p->owned[r], r * block, block);
    for (long i = 0; i < runs; i++) add_piece(&p->owned[r], strided + (i * np + r) * run, run);
  }
  long first = p->owned[rank].count;
  p->tile_units = deal_chunks(d, p, np, dealt, 1, 4096 / p->unit.bytes);
  MPI_Datatype members[3], type;
  MPI_Type_contiguous((int)block, p->unit.type, &members[0]);
  MPI_Type_vector((int)runs, (int)run, (int)run * np, p->unit.type, &members[1]);
  members[2] = indexed_type(&p->owned[rank], first, p->unit);  // its offsets are the tile's
  int ones[3] = {1, 1, 1};
  MPI_Aint at[3] = {rank * block * p->unit.bytes, (strided + rank * run) * p->unit.bytes, 0};
  MPI_Type_create_struct(3, ones, at, members, &type);
  for (int i = 0; i < 3; i++) MPI_Type_free(&members[i]);
  return type;
}

struct pattern draw_pattern(struct dice* d, int kind, int rank, int np) {
  static const struct {
    const char* name;
    MPI_Datatype (*draw)(struct dice*, struct pattern*, int, int);
  } kinds[pattern_kinds] = {{"nested vectors", nested_vectors},
                            {"indexed", indexed},
                            {"indexed blocks", indexed_blocks},
                            {"subarray", subarray},
                            {"struct", structure}};
  const struct unit units[3] = {{MPI_BYTE, 1}, {MPI_INT, 4}, {MPI_DOUBLE, 8}};
  struct pattern p = {.kind = kinds[kind].name, .unit = units[roll(d) % 3]};
  p.owned = calloc((size_t)np, sizeof *p.owned);
  MPI_Datatype type = kinds[kind].draw(d, &p, rank, np);
  p.filetype = resized(type, p.tile_units * p.unit.bytes);
  MPI_Type_commit(&p.filetype);
  return p;
}

void free_pattern(struct pattern* p, int np) {
  for (int r = 0; r < np; r++) free(p->owned[r].list);
  free(p->owned);
  MPI_Type_free(&p->filetype);
}

// --- the memory types -------------------------------------------------------------------------

static MPI_Datatype contiguous_memory(struct memory* m, struct unit unit) {
  add_piece(&m->pieces, 0, m->data_units);
  m->extent_units = m->data_units;
  MPI_Datatype type;
  MPI_Type_contiguous((int)m->data_units, unit.type, &type);
  return type;
}

// data_units in runs of random length with gaps between; reversed: the last run comes first in
// memory, so that file order and memory order disagree.
static MPI_Datatype scattered_memory(struct dice* d, struct memory* m, struct unit unit,
                                     bool reversed) {
  long at = 0, left = m->data_units;
  while (left > 0) {
    long length = roll_between(d, 1, left);
    at += roll_between(d, 0, 3);
    add_piece(&m->pieces, at, length);
    at += length;
    left -= length;
  }
  m->extent_units = at + roll_between(d, 0, 5);
  for (long i = 0, j = m->pieces.count - 1; reversed && i < j; i++, j--) {
    struct piece kept = m->pieces.list[i];
    m->pieces.list[i] = m->pieces.list[j];
    m->pieces.list[j] = kept;
  }
  return indexed_type(&m->pieces, 0, unit);
}

static MPI_Datatype strided_memory(struct dice* d, struct memory* m, struct unit unit) {
  long runs = m->data_units < 2 ? 1 : 2, run = m->data_units / runs;
  long stride = run + roll_between(d, 1, 16);
  for (long i = 0; i < runs; i++) add_piece(&m->pieces, i * stride, run);
  m->extent_units = runs * stride;
  MPI_Datatype type;
  MPI_Type_vector((int)runs, (int)run, (int)stride, unit.type, &type);
  return type;
}

struct memory draw_memory(struct dice* d, int kind, struct unit unit, long units_multiple) {
  static const char* const names[memory_kinds] = {"contiguous", "strided", "scattered",
                                                  "scattered backwards"};
  struct memory m = {.kind = names[kind], .data_units = units_multiple};
  MPI_Datatype type;
  if (kind == 0)
    type = contiguous_memory(&m, unit);
  else if (kind == 1)
    type = strided_memory(d, &m, unit);
  else
    type = scattered_memory(d, &m, unit, kind == 3);
  m.type = resized(type, m.extent_units * unit.bytes);
  MPI_Type_commit(&m.type);
  return m;
}

void free_memory(struct memory* m) {
  free(m->pieces.list);
  MPI_Type_free(&m->type);
}
