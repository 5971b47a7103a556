/* The access pattern of NAS BT-IO: a cube of five-vectors by diagonal multi-partitioning. q * q
 * ranks own q cells each, so that every rank has one in each slab of the cube. The file holds the
 * cubes in row order; each step appends one by a collective call. Memory has ghost layers.
 *
 * RANKS: 1 4
 * VARIANTS: striped
 */
#include <stdlib.h>

#include "mpi/expect.h"

enum { side = 12, components = 5, ghosts = 2, steps = 4, most_cells = 2 };

static int q;

struct cell {
  int start[3], size[3];
};

static struct cell cells[most_cells];

static double point_at(int step, int z, int y, int x, int component) {
  return ((((double)step * side + z) * side + y) * side + x) * components + component + 0.5;
}

/* The extents of part `index` of q of the cube's side. */
static void part(int index, int* start, int* size) {
  *start = index * side / q;
  *size = (index + 1) * side / q - *start;
}

static void own_cells(void) {
  const int column = here % q, row = here / q;
  for (int c = 0; c < q; ++c) {
    part(c, &cells[c].start[0], &cells[c].size[0]);
    part((row + c) % q, &cells[c].start[1], &cells[c].size[1]);
    part((column + q - c) % q, &cells[c].start[2], &cells[c].size[2]);
  }
}

static int padded(const struct cell* cell, int dimension) {
  return cell->size[dimension] + 2 * ghosts;
}

static size_t doubles_of(const struct cell* cell) {
  return (size_t)padded(cell, 0) * (size_t)padded(cell, 1) * (size_t)padded(cell, 2) * components;
}

static double* at(const struct cell* cell, double* data, int z, int y, int x) {
  return data + (((size_t)(z + ghosts) * (size_t)padded(cell, 1) + (size_t)(y + ghosts)) *
                     (size_t)padded(cell, 2) +
                 (size_t)(x + ghosts)) *
                    components;
}

/* All cells of this rank: in the file if memory is null, else at the cells' addresses. */
static MPI_Datatype cells_type(double** memory, MPI_Datatype element) {
  MPI_Datatype types[most_cells], all;
  MPI_Aint places[most_cells];
  int lens[most_cells];
  for (int c = 0; c < q; ++c) {
    int sizes[3], start[3];
    for (int d = 0; d < 3; ++d) {
      sizes[d] = memory ? padded(&cells[c], d) : side;
      start[d] = memory ? ghosts : cells[c].start[d];
    }
    MPI_Type_create_subarray(3, sizes, cells[c].size, start, MPI_ORDER_C, element, &types[c]);
    lens[c] = 1;
    places[c] = 0;
    if (memory) MPI_Get_address(memory[c], &places[c]);
  }
  MPI_Type_create_struct(q, lens, places, types, &all);
  if (!memory) {
    MPI_Datatype resized;
    MPI_Type_create_resized(all, 0, (MPI_Aint)side * side * side * components * 8, &resized);
    MPI_Type_free(&all);
    all = resized;
  }
  MPI_Type_commit(&all);
  for (int c = 0; c < q; ++c) MPI_Type_free(&types[c]);
  return all;
}

static void fill(double** memory, int step) {
  for (int c = 0; c < q; ++c) {
    for (size_t i = 0; i < doubles_of(&cells[c]); ++i) memory[c][i] = -1;
    for (int z = 0; z < cells[c].size[0]; ++z)
      for (int y = 0; y < cells[c].size[1]; ++y)
        for (int x = 0; x < cells[c].size[2]; ++x)
          for (int i = 0; i < components; ++i)
            at(&cells[c], memory[c], z, y, x)[i] = point_at(
                step, cells[c].start[0] + z, cells[c].start[1] + y, cells[c].start[2] + x, i);
  }
}

int main(int argc, char** argv) {
  double *memory[most_cells], *expected[most_cells];
  MPI_Datatype element, in_file;
  MPI_File fh;
  MPI_Status status;
  start_test(&argc, &argv, 100);
  for (q = 1; q * q < ranks;) ++q;
  EXPECT_EQ(q * q, ranks);
  own_cells();
  for (int c = 0; c < q; ++c) {
    memory[c] = malloc(doubles_of(&cells[c]) * sizeof(double));
    expected[c] = malloc(doubles_of(&cells[c]) * sizeof(double));
  }
  MPI_Type_contiguous(components, MPI_DOUBLE, &element);
  MPI_Type_commit(&element);
  in_file = cells_type(NULL, element);
  MPI_Datatype in_memory = cells_type(memory, element);

  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "btio.out", MPI_MODE_CREATE | MPI_MODE_RDWR,
                          MPI_INFO_NULL, &fh));
  EXPECT_OK(MPI_File_set_view(fh, 0, element, in_file, "native", MPI_INFO_NULL));
  long own = 0;
  for (int c = 0; c < q; ++c) own += (long)cells[c].size[0] * cells[c].size[1] * cells[c].size[2];
  for (int step = 0; step < steps; ++step) {
    fill(memory, step);
    EXPECT_OK(MPI_File_write_at_all(fh, step * own, MPI_BOTTOM, 1, in_memory, &status));
  }
  for (int step = steps - 1; step >= 0; --step) {
    fill(expected, step);
    for (int c = 0; c < q; ++c)
      for (size_t i = 0; i < doubles_of(&cells[c]); ++i) memory[c][i] = -1;
    EXPECT_OK(MPI_File_read_at_all(fh, step * own, MPI_BOTTOM, 1, in_memory, &status));
    for (int c = 0; c < q; ++c)
      EXPECT(memcmp(memory[c], expected[c], doubles_of(&cells[c]) * sizeof(double)) == 0);
  }

  /* One cube after another. */
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL));
  static double cube[side * side * side * components];
  for (int step = 0; step < steps; ++step) {
    const int doubles = side * side * side * components;
    EXPECT_OK(MPI_File_read_at(fh, (MPI_Offset)step * doubles, cube, doubles, MPI_DOUBLE, &status));
    for (int i = 0; i < doubles; ++i) EXPECT(cube[i] == (double)step * doubles + i + 0.5);
  }
  EXPECT_OK(MPI_File_close(&fh));
  for (int c = 0; c < q; ++c) {
    free(memory[c]);
    free(expected[c]);
  }
  MPI_Type_free(&element);
  MPI_Type_free(&in_file);
  MPI_Type_free(&in_memory);
  return end_test();
}
