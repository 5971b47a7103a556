/* Views: the arguments that set_view accepts, the results of get_view, and the unit of positions.
 *
 * RANKS: 1 2 4
 * VARIANTS: striped
 * ENV: SHIMA_LOG=error
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"

static MPI_File open_file(int extra) {
  MPI_File fh;
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "views.out", MPI_MODE_CREATE | MPI_MODE_RDWR | extra,
                          MPI_INFO_NULL, &fh));
  return fh;
}

/* Ints 0, 2 of every three, from byte 100 on. */
static MPI_Datatype two_of_three(void) {
  int places[2] = {0, 2};
  MPI_Datatype pieces, type;
  MPI_Type_create_indexed_block(2, 1, places, MPI_INT, &pieces);
  MPI_Type_create_resized(pieces, 0, 3 * sizeof(int), &type);
  MPI_Type_free(&pieces);
  MPI_Type_commit(&type);
  return type;
}

static void expect_view(MPI_File fh, MPI_Offset displacement, int etype_size, int filetype_size,
                        const char* name) {
  MPI_Offset got;
  MPI_Datatype etype, filetype;
  char datarep[MPI_MAX_DATAREP_STRING];
  int size, ints, addresses, types, combiner;
  EXPECT_OK(MPI_File_get_view(fh, &got, &etype, &filetype, datarep));
  EXPECT_EQ(got, displacement);
  EXPECT(strcmp(datarep, name) == 0);
  MPI_Type_size(etype, &size);
  EXPECT_EQ(size, etype_size);
  MPI_Type_size(filetype, &size);
  EXPECT_EQ(size, filetype_size);
  MPI_Type_get_envelope(filetype, &ints, &addresses, &types, &combiner);
  if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(&filetype);
  MPI_Type_get_envelope(etype, &ints, &addresses, &types, &combiner);
  if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(&etype);
}

static void test_get_view(void) {
  MPI_File fh = open_file(MPI_MODE_DELETE_ON_CLOSE);
  MPI_Datatype type = two_of_three();
  MPI_Aint extent = 0;
  expect_view(fh, 0, 1, 1, "native");
  EXPECT_OK(MPI_File_set_view(fh, 100, MPI_INT, type, "native", MPI_INFO_NULL));
  MPI_Type_free(&type); /* the view keeps a reference */
  expect_view(fh, 100, 4, 8, "native");
  expect_view(fh, 100, 4, 8, "native");
  EXPECT_OK(MPI_File_set_view(fh, 3, MPI_DOUBLE, MPI_DOUBLE, "internal", MPI_INFO_NULL));
  expect_view(fh, 3, 8, 8, "internal");
  EXPECT_OK(MPI_File_get_type_extent(fh, MPI_DOUBLE, &extent));
  EXPECT_EQ(extent, 8);
  EXPECT_OK(MPI_File_close(&fh));
}

static void expect_position(MPI_File fh, MPI_Offset expected) {
  MPI_Offset position = -1;
  EXPECT_OK(MPI_File_get_position(fh, &position));
  EXPECT_EQ(position, expected);
}

static void expect_byte_offset(MPI_File fh, MPI_Offset etypes, MPI_Offset expected) {
  MPI_Offset place = -1;
  EXPECT_OK(MPI_File_get_byte_offset(fh, etypes, &place));
  EXPECT_EQ(place, expected);
}

static void test_positions(void) {
  MPI_File fh = open_file(MPI_MODE_DELETE_ON_CLOSE);
  MPI_Datatype type = two_of_three();
  int values[4] = {1, 2, 3, 4};
  EXPECT_OK(
      MPI_File_set_size(fh, 100 + 40)); /* bytes 100-139: ints 0, 2, 3, 5, 6, 8, 9 of the view */
  EXPECT_OK(MPI_File_seek(fh, 5, MPI_SEEK_SET));
  EXPECT_OK(MPI_File_set_view(fh, 100, MPI_INT, type, "native", MPI_INFO_NULL));
  expect_position(fh, 0);
  expect_byte_offset(fh, 0, 100);
  expect_byte_offset(fh, 1, 108);
  expect_byte_offset(fh, 2, 112);
  expect_byte_offset(fh, 1000001, 100 + 500000 * 12LL + 8);
  EXPECT_OK(MPI_File_seek(fh, 0, MPI_SEEK_END));
  expect_position(fh, 7);
  EXPECT_OK(MPI_File_seek(fh, -3, MPI_SEEK_END));
  expect_position(fh, 4);
  EXPECT_OK(MPI_File_seek(fh, -2, MPI_SEEK_CUR));
  expect_position(fh, 2);
  EXPECT_OK(MPI_File_read(fh, values, 3, MPI_INT, MPI_STATUS_IGNORE));
  expect_position(fh, 5);
  EXPECT_OK(MPI_File_read_all(fh, values, 1, MPI_INT, MPI_STATUS_IGNORE));
  expect_position(fh, 6);
  EXPECT_OK(MPI_File_read_at(fh, 1, values, 4, MPI_INT, MPI_STATUS_IGNORE));
  expect_position(fh, 6); /* explicit offsets do not move the pointer */
  EXPECT_CLASS(MPI_File_seek(fh, -7, MPI_SEEK_CUR), MPI_ERR_ARG);
  EXPECT_CLASS(MPI_File_seek(fh, -1, MPI_SEEK_SET), MPI_ERR_ARG);
  expect_position(fh, 6);
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Type_free(&type);
}

/* A filetype whose extent is shorter than its span: tiles interleave. Writes column by column. */
static void test_interleaved_tiles(void) {
  MPI_File fh;
  MPI_Datatype column, type;
  int values[16], written[16];
  char name[64];
  sprintf(name, "views.%d.out", here);
  for (int i = 0; i < 16; i++) written[i] = i + 1;
  EXPECT_OK(MPI_File_open(MPI_COMM_SELF, name,
                          MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                          &fh));
  MPI_Type_vector(4, 1, 4, MPI_INT, &column);
  MPI_Type_create_resized(column, 0, sizeof(int), &type);
  MPI_Type_commit(&type);
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_INT, type, "native", MPI_INFO_NULL));
  EXPECT_OK(MPI_File_write(fh, written, 6, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_write_all(fh, written + 6, 10, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  EXPECT_OK(MPI_File_read(fh, values, 16, MPI_INT, MPI_STATUS_IGNORE));
  for (int i = 0; i < 16; i++) EXPECT_EQ(values[i], i % 4 * 4 + i / 4 + 1);
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Type_free(&type);
  MPI_Type_free(&column);
}

/* Every rank accesses its column of a matrix; some ranks' views are empty. */
static void test_columns(void) {
  enum { rows = 64 };
  MPI_File fh = open_file(0);
  MPI_Datatype column;
  int mine[rows], values[rows];
  MPI_Type_vector(here == 1 ? 0 : rows, 1, ranks, MPI_INT, &column);
  MPI_Type_commit(&column);
  for (int i = 0; i < rows; i++) mine[i] = here * 1000 + i;
  EXPECT_OK(MPI_File_set_size(fh, 0));
  EXPECT_OK(MPI_File_set_view(fh, here * (MPI_Offset)sizeof(int), MPI_INT, column, "native",
                              MPI_INFO_NULL));
  EXPECT_OK(MPI_File_write_all(fh, mine, here == 1 ? 0 : rows, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_seek(fh, 0, MPI_SEEK_SET));
  EXPECT_OK(MPI_File_read_all(fh, values, here == 1 ? 0 : rows, MPI_INT, MPI_STATUS_IGNORE));
  for (int i = 0; i < rows && here != 1; i++) EXPECT_EQ(values[i], mine[i]);
  if (here == 1)
    EXPECT_CLASS(MPI_File_write_at(fh, 0, mine, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Type_free(&column);
  if (here == 0) {
    for (int i = 0; i < rows * ranks; i++) {
      int found = 0;
      if (stored_read("views.out", &found, sizeof found, i * (long long)sizeof found) <= 0)
        found = 0;
      EXPECT_EQ(found, i % ranks == 1 ? 0 : i % ranks * 1000 + i / ranks);
    }
    unlink("views.out");
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  test_get_view();
  test_positions();
  test_interleaved_tiles();
  test_columns();
  return end_test();
}
