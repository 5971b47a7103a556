/* MPI-4.1, section 14.3: views. The arguments that set_view accepts and refuses, the results of
 * get_view, the pointers, and types with holes, explicit bounds and distributions.
 *
 * RANKS: 1 2 4
 * VARIANTS: striped
 * ENV: SHIMA_LOG=error
 */
#include "mpi/expect.h"

static int set_view(MPI_File fh, MPI_Offset at, MPI_Datatype etype, MPI_Datatype filetype) {
  return MPI_File_set_view(fh, at, etype, filetype, "native", MPI_INFO_NULL);
}

static void free_unless_named(MPI_Datatype* type) {
  int ints, addresses, types, combiner;
  MPI_Type_get_envelope(*type, &ints, &addresses, &types, &combiner);
  if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(type);
}

static void expect_same_layout(MPI_Datatype type, MPI_Datatype expected) {
  MPI_Aint bounds[4];
  int sizes[2];
  MPI_Type_get_extent(type, &bounds[0], &bounds[1]);
  MPI_Type_get_extent(expected, &bounds[2], &bounds[3]);
  MPI_Type_size(type, &sizes[0]);
  MPI_Type_size(expected, &sizes[1]);
  EXPECT_EQ(bounds[0], bounds[2]);
  EXPECT_EQ(bounds[1], bounds[3]);
  EXPECT_EQ(sizes[0], sizes[1]);
}

static void expect_view(MPI_File fh, MPI_Offset at, MPI_Datatype etype, MPI_Datatype filetype,
                        const char* datarep) {
  MPI_Offset got_at = -1;
  MPI_Datatype got_etype, got_filetype;
  char name[MPI_MAX_DATAREP_STRING];
  EXPECT_OK(MPI_File_get_view(fh, &got_at, &got_etype, &got_filetype, name));
  EXPECT_EQ(got_at, at);
  EXPECT(strcmp(name, datarep) == 0);
  expect_same_layout(got_etype, etype);
  expect_same_layout(got_filetype, filetype);
  /* The types returned can be set again. */
  EXPECT_OK(MPI_File_set_view(fh, at, got_etype, got_filetype, name, MPI_INFO_NULL));
  free_unless_named(&got_etype);
  free_unless_named(&got_filetype);
}

/* The view of a new file is bytes; get_view returns the current view, even of freed types. */
static void get_view_tells_the_view(void) {
  MPI_Datatype type, kept, contiguous;
  MPI_File fh = open_fresh("views.out");
  expect_view(fh, 0, MPI_BYTE, MPI_BYTE, "native");
  MPI_Type_vector(2, 1, 3 + here, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  MPI_Type_dup(type, &kept);
  MPI_Type_contiguous(2, MPI_INT, &contiguous);
  MPI_Type_commit(&contiguous);
  EXPECT_OK(set_view(fh, 11 * here, MPI_DOUBLE, type));
  MPI_Type_free(&type);
  expect_view(fh, 11 * here, MPI_DOUBLE, kept, "native");
  EXPECT_OK(MPI_File_set_view(fh, 5, contiguous, contiguous, "internal", MPI_INFO_NULL));
  expect_view(fh, 5, contiguous, contiguous, "internal");
  MPI_Type_free(&contiguous);
  MPI_Type_free(&kept);
  EXPECT_OK(MPI_File_close(&fh));
}

/* A new view puts both pointers at its start. */
static void set_view_resets_pointers(void) {
  MPI_File fh = open_fresh("views.out");
  EXPECT_OK(MPI_File_seek(fh, 20, MPI_SEEK_SET));
  EXPECT_OK(MPI_File_seek_shared(fh, 30, MPI_SEEK_SET));
  EXPECT_OK(set_view(fh, 100, MPI_INT, MPI_INT));
  EXPECT_EQ(position_of(fh), 0);
  EXPECT_EQ(shared_position_of(fh), 0);
  EXPECT_OK(MPI_File_close(&fh));
  fh = open_world("views.out", MPI_MODE_RDWR | MPI_MODE_APPEND);
  EXPECT_OK(set_view(fh, 0, MPI_BYTE, MPI_BYTE));
  EXPECT_EQ(position_of(fh), 0);
  EXPECT_EQ(shared_position_of(fh), 0);
  EXPECT_OK(MPI_File_close(&fh));
}

static MPI_Datatype ints_at(int count, const int* places) {
  MPI_Datatype type;
  MPI_Type_create_indexed_block(count, 1, places, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

/* Displacements of a filetype do not decrease, are not negative, and do not overlap for writing. */
static void filetypes_are_checked(void) {
  const int down[2] = {3, 0}, negative[2] = {-1, 1}, twice[2] = {1, 1};
  MPI_Datatype types[3] = {ints_at(2, down), ints_at(2, negative), ints_at(2, twice)};
  MPI_Datatype uncommitted;
  MPI_Type_contiguous(2, MPI_INT, &uncommitted);
  MPI_File fh = open_fresh("views.out");
  EXPECT_OK(set_view(fh, 8, MPI_INT, MPI_INT));
  for (int i = 0; i < 3; ++i) EXPECT(set_view(fh, 0, MPI_INT, types[i]) != MPI_SUCCESS);
  EXPECT(set_view(fh, 0, MPI_INT, uncommitted) != MPI_SUCCESS);
  EXPECT(set_view(fh, 0, MPI_DOUBLE, MPI_INT) != MPI_SUCCESS);
  EXPECT(set_view(fh, -1, MPI_INT, MPI_INT) != MPI_SUCCESS);
  EXPECT(set_view(fh, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT) != MPI_SUCCESS);
  expect_view(fh, 8, MPI_INT, MPI_INT, "native"); /* as before */
  EXPECT_OK(MPI_File_close(&fh));
  fh = open_world("views.out", MPI_MODE_RDONLY);
  EXPECT(set_view(fh, 0, MPI_INT, types[0]) != MPI_SUCCESS);
  EXPECT(set_view(fh, 0, MPI_INT, types[1]) != MPI_SUCCESS);
  EXPECT_OK(set_view(fh, 0, MPI_INT, types[2]));
  EXPECT_OK(MPI_File_close(&fh));
  for (int i = 0; i < 3; ++i) MPI_Type_free(&types[i]);
  MPI_Type_free(&uncommitted);
}

/* Displacement and filetype may differ between ranks; etype extent and representation must not. */
static void what_ranks_must_share(void) {
  MPI_File fh = open_fresh("views.out");
  EXPECT_OK(set_view(fh, 1000 * here, MPI_INT, here % 2 ? MPI_2INT : MPI_INT));
  EXPECT_OK(set_view(fh, 0, here % 2 ? MPI_FLOAT : MPI_INT, here % 2 ? MPI_FLOAT : MPI_INT));
  if (ranks > 1) {
    MPI_Datatype type = here % 2 ? MPI_SHORT : MPI_INT;
    EXPECT_CLASS(set_view(fh, 0, type, type), MPI_ERR_NOT_SAME);
    EXPECT_CLASS(
        MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, here % 2 ? "native" : "internal", MPI_INFO_NULL),
        MPI_ERR_NOT_SAME);
  }
  EXPECT_OK(MPI_File_close(&fh));
}

static char own[40];

/* Writes ints 1.. through a view of a file of this rank and checks the place of each. */
static void check_places(MPI_Offset at, MPI_Datatype filetype, int count, const int* places) {
  enum { most = 16 };
  int data[most];
  MPI_Offset place = -1;
  MPI_File fh = open_self(own, MPI_MODE_CREATE | MPI_MODE_RDWR);
  EXPECT_OK(MPI_File_set_size(fh, 0));
  view_native(fh, at, MPI_INT, filetype);
  for (int i = 0; i < count; ++i) data[i] = i + 1;
  EXPECT_OK(MPI_File_write_all(fh, data, count, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_close(&fh));
  for (int i = 0; i < count; ++i) expect_stored(own, at + places[i], &data[i], sizeof(int));
  fh = open_self(own, MPI_MODE_RDONLY);
  EXPECT_EQ(file_size_of(fh), at + places[count - 1] + (int)sizeof(int));
  view_native(fh, at, MPI_INT, filetype);
  for (int i = 0; i < count; ++i) {
    EXPECT_OK(MPI_File_get_byte_offset(fh, i, &place));
    EXPECT_EQ(place, at + places[i]);
  }
  EXPECT_OK(MPI_File_close(&fh));
}

static void resized_places(MPI_Aint lower, MPI_Aint extent, const int* places) {
  const int block[2] = {2, 3};
  MPI_Datatype pieces = ints_at(2, block), type;
  MPI_Type_create_resized(pieces, lower, extent, &type);
  MPI_Type_commit(&type);
  check_places(7, type, 6, places);
  MPI_Type_free(&pieces);
  MPI_Type_free(&type);
}

/* The extent of a filetype, whatever its bounds, is the distance of its tiles. */
static void bounds_set_the_tiling(void) {
  const int wide[6] = {8, 12, 108, 112, 208, 212}, tight[6] = {8, 12, 16, 20, 24, 28};
  const int natural[6] = {8, 12, 16, 20, 24, 28}, odd[6] = {8, 12, 17, 21, 26, 30};
  const int block[2] = {2, 3};
  resized_places(0, 100, wide);
  resized_places(8, 100, wide);
  resized_places(-50, 100, wide);
  resized_places(8, 8, tight);
  resized_places(1, 9, odd);
  MPI_Datatype type = ints_at(2, block); /* its lower bound is 8, its extent 8 */
  check_places(0, type, 6, natural);
  MPI_Type_free(&type);
}

/* Distributed arrays: block-cyclic pieces of all ranks cover the file once. */
static void distributed_arrays_partition(void) {
  enum { rows = 11, columns = 13 };
  int sizes[2] = {rows, columns}, grid[2] = {0, 0}, count = 0;
  int kinds[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
  int arguments[2] = {2, MPI_DISTRIBUTE_DFLT_DARG};
  int data[rows * columns];
  MPI_Datatype type;
  MPI_Dims_create(ranks, 2, grid);
  MPI_Type_create_darray(ranks, here, 2, sizes, kinds, arguments, grid, MPI_ORDER_C, MPI_INT,
                         &type);
  MPI_Type_commit(&type);
  MPI_Type_size(type, &count);
  count /= (int)sizeof(int);
  MPI_File fh = open_fresh("darray.out");
  view_native(fh, 0, MPI_INT, type);
  const int width = (columns + grid[1] - 1) / grid[1], my_row = here / grid[1],
            my_column = here % grid[1];
  int n = 0;
  for (int i = 0; i < rows * columns; ++i)
    if (i / columns / 2 % grid[0] == my_row && i % columns / width == my_column) data[n++] = i;
  EXPECT_EQ(n, count);
  EXPECT_OK(MPI_File_write_all(fh, data, count, MPI_INT, MPI_STATUS_IGNORE));
  sync_barrier_sync(fh);
  for (int i = 0; i < rows * columns; ++i)
    expect_stored("darray.out", i * (long long)sizeof i, &i, sizeof i);
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Type_free(&type);
}

/* MPI_DISPLACEMENT_CURRENT: the place of the shared pointer, and required for sequential files. */
static void sequential_files_go_on_from_here(void) {
  int value = here + 1;
  char datarep[MPI_MAX_DATAREP_STRING];
  MPI_Offset at = -1;
  MPI_Datatype etype, filetype;
  MPI_File fh =
      open_world("sequential.out", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  EXPECT_OK(MPI_File_write_ordered(fh, "text\n", here ? 0 : 5, MPI_CHAR, MPI_STATUS_IGNORE));
  EXPECT(set_view(fh, 0, MPI_INT, MPI_INT) != MPI_SUCCESS);
  EXPECT_OK(set_view(fh, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT));
  EXPECT_OK(MPI_File_write_ordered(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(set_view(fh, MPI_DISPLACEMENT_CURRENT, MPI_CHAR, MPI_CHAR));
  EXPECT_OK(MPI_File_get_view(fh, &at, &etype, &filetype, datarep));
  EXPECT_EQ(at, 5 + 4 * ranks);
  EXPECT_OK(MPI_File_close(&fh));
  for (value = 1; value <= ranks; ++value)
    expect_stored("sequential.out", 1 + 4 * value, &value, sizeof value);
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  snprintf(own, sizeof own, "own.%d.out", here);
  get_view_tells_the_view();
  set_view_resets_pointers();
  filetypes_are_checked();
  what_ranks_must_share();
  bounds_set_the_tiling();
  distributed_arrays_partition();
  sequential_files_go_on_from_here();
  return end_test();
}
