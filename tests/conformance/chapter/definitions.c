/* MPI-4.1, section 14.1: definitions. A view is a displacement, an etype and a filetype that tiles
 * the file from there on; offsets count etypes of the view; the end of the file is the start of the
 * view's first etype after the last byte. The bytes are compared with a model of ints.
 *
 * RANKS: 1 2 4 7
 * VARIANTS: striped
 * ENV: SHIMA_LOG=error
 */
#include "mpi/expect.h"

enum { in_tile = 6, header_bytes = 10 };

/* Ints 1 and 4 of every six: a filetype with holes at its start, in between and at its end. */
static MPI_Datatype two_of_six(void) {
  int places[2] = {1, 4};
  MPI_Datatype pieces, type;
  MPI_Type_create_indexed_block(2, 1, places, MPI_INT, &pieces);
  MPI_Type_create_resized(pieces, 0, in_tile * sizeof(int), &type);
  MPI_Type_free(&pieces);
  MPI_Type_commit(&type);
  return type;
}

/* The file offset of etype n of two_of_six. */
static long long place_in_tiles(long long n) {
  return n / 2 * in_tile * (long long)sizeof(int) + (n % 2 ? 4 : 1) * (long long)sizeof(int);
}

/* Displacement: bytes before it are not part of the view. */
static void displacement_skips_a_header(void) {
  const char* name = "header.out";
  int value = 1000 + here;
  MPI_File fh = open_fresh(name);
  if (here == 0)
    EXPECT_OK(MPI_File_write_at(fh, 0, "0123456789", header_bytes, MPI_CHAR, MPI_STATUS_IGNORE));
  sync_barrier_sync(fh);
  view_native(fh, header_bytes, MPI_INT, MPI_INT);
  EXPECT_OK(MPI_File_write_at(fh, here, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  sync_barrier_sync(fh);
  expect_stored(name, 0, "0123456789", header_bytes);
  for (int r = 0; r < ranks; ++r) {
    value = 1000 + r;
    expect_stored(name, header_bytes + r * (long long)sizeof value, &value, sizeof value);
  }
  EXPECT_EQ(file_size_of(fh), header_bytes + ranks * (int)sizeof value);
  EXPECT_OK(MPI_File_close(&fh));
}

/* Filetype: it tiles the file from the displacement on, and its holes are never touched. */
static void filetypes_tile_the_file(void) {
  enum { written = 7, ints = 30 };
  char name[40];
  int data[written], background[ints], expected[ints];
  MPI_Datatype type = two_of_six();
  snprintf(name, sizeof name, "tiles.%d.out", here);
  MPI_File fh = open_self(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
  for (int i = 0; i < ints; ++i) expected[i] = background[i] = -1 - i;
  EXPECT_OK(MPI_File_write_at(fh, 0, background, ints, MPI_INT, MPI_STATUS_IGNORE));
  view_native(fh, sizeof(int), MPI_INT, type);
  for (int i = 0; i < written; ++i) {
    data[i] = 100 * here + i;
    expected[1 + place_in_tiles(i) / (long long)sizeof(int)] = data[i];
  }
  EXPECT_OK(MPI_File_write(fh, data, written, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_close(&fh));
  expect_stored(name, 0, expected, sizeof expected);
  MPI_Type_free(&type);
}

/* Etype: offsets count it, and it may have holes and more than one element. */
static void offsets_count_etypes(void) {
  enum { etypes = 5 };
  char name[40];
  int data[2 * etypes], back[2] = {0, 0};
  MPI_Offset place = -1;
  MPI_Datatype type = two_of_six();
  snprintf(name, sizeof name, "etypes.%d.out", here);
  MPI_File fh = open_self(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
  view_native(fh, 3, type, type);
  for (int i = 0; i < 2 * etypes; ++i) data[i] = here + i;
  EXPECT_OK(MPI_File_write(fh, data, 2 * etypes, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_EQ(position_of(fh), etypes);
  EXPECT_OK(MPI_File_read_at(fh, 3, back, 2, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_EQ(back[0], data[6]);
  EXPECT_EQ(back[1], data[7]);
  for (int n = 0; n < 10; ++n) {
    EXPECT_OK(MPI_File_get_byte_offset(fh, n, &place));
    EXPECT_EQ(place, 3 + place_in_tiles(2 * n));
  }
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Type_free(&type);
}

/* Pair types have holes, in files as in memory. */
static void pair_types_keep_their_holes(void) {
  struct {
    double value;
    int index;
  } pairs[3], found[3];
  MPI_Status status;
  char name[40];
  snprintf(name, sizeof name, "pairs.%d.out", here);
  memset(pairs, 0x77, sizeof pairs);
  memset(found, 0x11, sizeof found);
  for (int i = 0; i < 3; ++i) pairs[i].value = i + 0.5, pairs[i].index = here + i;
  MPI_File fh = open_self(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
  view_native(fh, 0, MPI_DOUBLE_INT, MPI_DOUBLE_INT);
  EXPECT_OK(MPI_File_write(fh, pairs, 3, MPI_DOUBLE_INT, &status));
  expect_items(&status, MPI_DOUBLE_INT, 3);
  EXPECT_EQ(position_of(fh), 3);
  EXPECT_EQ(file_size_of(fh), 2 * (int)sizeof pairs[0] + 12);
  EXPECT_OK(MPI_File_read_at(fh, 0, found, 3, MPI_DOUBLE_INT, &status));
  for (int i = 0; i < 3; ++i) {
    EXPECT(found[i].value == pairs[i].value && found[i].index == pairs[i].index);
    expect_stored(name, i * (int)sizeof pairs[0], &pairs[i], 12);
    EXPECT_EQ(((unsigned char*)&found[i])[12], 0x11);
  }
  EXPECT_OK(MPI_File_close(&fh));
}

/* View: processes with complementary views partition a file among them. */
static void complementary_views_partition(void) {
  enum { each = 50 };
  const char* name = "partition.out";
  short data[each], found[each];
  MPI_Datatype type, own = MPI_SHORT;
  MPI_File fh = open_fresh(name);
  MPI_Type_create_resized(own, 0, ranks * (MPI_Aint)sizeof(short), &type);
  MPI_Type_commit(&type);
  view_native(fh, here * (MPI_Offset)sizeof(short), MPI_SHORT, type);
  for (int i = 0; i < each; ++i) data[i] = (short)(here * each + i);
  EXPECT_OK(MPI_File_write_all(fh, data, each, MPI_SHORT, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_read_at(fh, 0, found, each, MPI_SHORT, MPI_STATUS_IGNORE));
  EXPECT(memcmp(found, data, sizeof data) == 0);
  sync_barrier_sync(fh);
  for (int i = 0; i < each * ranks; ++i) {
    const short value = (short)(i % ranks * each + i / ranks);
    expect_stored(name, i * (long long)sizeof value, &value, sizeof value);
  }
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Type_free(&type);
}

/* End of file: the first etype of the view that starts after the last byte. */
static void end_of_file_is_of_the_view(void) {
  char name[40];
  MPI_Datatype type = two_of_six();
  snprintf(name, sizeof name, "end.%d.out", here);
  MPI_File fh = open_self(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
  view_native(fh, 5, MPI_INT, type);
  for (int size = 0; size < 70; ++size) {
    int first = 0;
    while (5 + place_in_tiles(first) < size) ++first;
    EXPECT_OK(MPI_File_set_size(fh, size));
    EXPECT_OK(MPI_File_seek(fh, 0, MPI_SEEK_END));
    EXPECT_EQ(position_of(fh), first);
    EXPECT_EQ(file_size_of(fh), size);
  }
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Type_free(&type);
}

/* File handle and file pointer: two opens give two handles, each with its own pointers and view. */
static void handles_are_apart(void) {
  int value = 7;
  MPI_File first = open_fresh("handles.out");
  MPI_File second = open_world("handles.out", MPI_MODE_RDONLY);
  EXPECT(first != second && first != MPI_FILE_NULL);
  view_native(second, 0, MPI_INT, MPI_INT);
  EXPECT_OK(MPI_File_seek(first, 12, MPI_SEEK_SET));
  EXPECT_EQ(position_of(second), 0);
  EXPECT_OK(MPI_File_write_all(first, &value, here == 0, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_seek_shared(first, 3, MPI_SEEK_SET));
  EXPECT_EQ(position_of(second), 0);
  EXPECT_EQ(shared_position_of(second), 0);
  sync_barrier_sync(first);
  EXPECT_OK(MPI_File_sync(second));
  value = 0;
  EXPECT_OK(MPI_File_read_at(second, 3, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_EQ(value, 7);
  EXPECT_OK(MPI_File_close(&first));
  EXPECT_OK(MPI_File_seek(second, 1, MPI_SEEK_CUR));
  EXPECT_OK(MPI_File_close(&second));
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  displacement_skips_a_header();
  filetypes_tile_the_file();
  offsets_count_etypes();
  pair_types_keep_their_holes();
  complementary_views_partition();
  end_of_file_is_of_the_view();
  handles_are_apart();
  return end_test();
}
