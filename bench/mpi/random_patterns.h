// random_patterns.h: a random distribution of a file over ranks, and a random layout of memory.
//
// A pattern is drawn from its seed alone, so every rank can draw it, know the data of all ranks,
// and check the file without trusting any MPI datatype. It has two forms: an MPI datatype, which
// the MPI-IO under test uses, and a plain list of pieces, which the check uses.
//
// All numbers count units: the etype (1, 4 or 8 bytes). One tile of the file type covers
// tile_units; the file is a sequence of tiles.

#ifndef SHIMA_BENCH_RANDOM_PATTERNS_H
#define SHIMA_BENCH_RANDOM_PATTERNS_H

#include <mpi.h>
#include <stdint.h>

struct piece {
  long offset, length;  // in units
};

struct pieces {
  struct piece* list;
  long count, capacity;
  long units;  // sum of the lengths
};

void add_piece(struct pieces* p, long offset, long length);

// A splitmix64 generator: the same numbers on every machine and rank.
struct dice {
  uint64_t state;
};

uint64_t roll(struct dice* d);
long roll_between(struct dice* d, long low, long high);  // inclusive
long roll_size(struct dice* d, long low, long high);     // small ones as likely as big ones

struct unit {
  MPI_Datatype type;
  long bytes;
};

struct pattern {
  const char* kind;
  struct unit unit;
  long tile_units;
  struct pieces* owned;   // [np]: each rank's pieces within one tile, in file order
  MPI_Datatype filetype;  // this rank's
};

struct memory {
  const char* kind;
  long extent_units, data_units;  // of one memtype
  struct pieces pieces;           // in the order of the type map
  MPI_Datatype type;
};

enum { pattern_kinds = 5, memory_kinds = 4 };

struct pattern draw_pattern(struct dice* d, int kind, int rank, int np);
void free_pattern(struct pattern* p, int np);

// data_units of the memtype divides units_multiple, so that a whole number of them fits.
struct memory draw_memory(struct dice* d, int kind, struct unit unit, long units_multiple);
void free_memory(struct memory* m);

#endif
