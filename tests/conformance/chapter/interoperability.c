/* MPI-4.1, section 14.5: data representations. Native is as in memory, internal can be read back,
 * external32 is big-endian on every machine; extents and displacements in the file; views with
 * holes. user_representation.c tests representations that a program registers.
 *
 * RANKS: 1 2 4
 * VARIANTS: striped
 * ENV: SHIMA_LOG=error
 */
#include <math.h>
#include <stddef.h>

#include "mpi/expect.h"

static const char* const name = "representation.out";

static MPI_Status status;

struct item {
  char letter;
  double real;
  short number;
  float small;
};

/* Memory has gaps; in external32 the elements are contiguous. */
static MPI_Datatype item_type(void) {
  const int parts[4] = {1, 1, 1, 1};
  const MPI_Aint places[4] = {offsetof(struct item, letter), offsetof(struct item, real),
                              offsetof(struct item, number), offsetof(struct item, small)};
  const MPI_Datatype types[4] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT, MPI_FLOAT};
  MPI_Datatype pieces, type;
  MPI_Type_create_struct(4, parts, places, types, &pieces);
  MPI_Type_create_resized(pieces, 0, sizeof(struct item), &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&pieces);
  return type;
}

static MPI_File open_view(const char* datarep, MPI_Datatype etype, MPI_Datatype filetype) {
  MPI_File fh = open_fresh(name);
  EXPECT_OK(MPI_File_set_view(fh, 0, etype, filetype, datarep, MPI_INFO_NULL));
  return fh;
}

/* 14.5: bytes written in a representation can be read back by it, whatever the layout in memory. */
static void representations_come_back(const char* datarep) {
  struct item items[10], found[10];
  MPI_Datatype type = item_type();
  memset(items, 0, sizeof items);
  memset(found, 0, sizeof found);
  for (int i = 0; i < 10; ++i)
    items[i] = (struct item){.letter = (char)('a' + i),
                             .real = here + i / 7.0,
                             .number = (short)(-i * 1000),
                             .small = (float)i};
  items[3].real = INFINITY, items[4].small = -INFINITY, items[5].real = -0.0;
  MPI_File fh = open_view(datarep, MPI_BYTE, MPI_BYTE);
  EXPECT_OK(MPI_File_write_ordered(fh, items, 10, type, &status));
  expect_items(&status, type, 10);
  sync_barrier_sync(fh);
  EXPECT_EQ(file_size_of(fh), ranks * 10 * 15);
  EXPECT_OK(MPI_File_close(&fh));
  fh = open_world(name, MPI_MODE_RDONLY);
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, datarep, MPI_INFO_NULL));
  EXPECT_OK(MPI_File_read_at_all(fh, here * 150, found, 10, type, &status));
  expect_items(&status, type, 10);
  for (int i = 0; i < 10; ++i) {
    EXPECT(found[i].letter == items[i].letter && found[i].number == items[i].number);
    EXPECT(found[i].real == items[i].real && found[i].small == items[i].small);
  }
  EXPECT(signbit(found[5].real) != 0);
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Type_free(&type);
}

static char* put_big_endian(char* to, const void* value, int bytes) {
  for (int i = 0; i < bytes; ++i) to[i] = ((const char*)value)[bytes - 1 - i];
  return to + bytes;
}

/* 14.5.2: external32 is big-endian IEEE and two's complement, without gaps. The result could be
 * compared with MPI_Pack_external, but MPICH's executes an illegal instruction for such a struct.
 */
static void external32_is_big_endian(void) {
  struct item items[3];
  char expected[45], *to = expected;
  MPI_Datatype type = item_type();
  memset(items, 0, sizeof items);
  for (int i = 0; i < 3; ++i) {
    items[i] = (struct item){'x', 1.5 * i - here, (short)(258 + i), 0.1F * (float)i};
    to = put_big_endian(to, &items[i].letter, 1);
    to = put_big_endian(to, &items[i].real, 8);
    to = put_big_endian(to, &items[i].number, 2);
    to = put_big_endian(to, &items[i].small, 4);
  }
  MPI_File fh = open_view("external32", MPI_BYTE, MPI_BYTE);
  EXPECT_OK(MPI_File_write_at_all(fh, here * 45, items, 3, type, &status));
  expect_stored(name, here * 45, expected, sizeof expected);
  expect_stored(name, here * 45 + 15 + 9, "\1\3", 2);
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Type_free(&type);
}

static void expect_extent(MPI_File fh, MPI_Datatype type, MPI_Aint expected) {
  MPI_Aint extent = -1;
  EXPECT_OK(MPI_File_get_type_extent(fh, type, &extent));
  EXPECT_EQ(extent, expected);
#if MPI_VERSION >= 4
  MPI_Count wide = -1;
  EXPECT_OK(MPI_File_get_type_extent_c(fh, type, &wide));
  EXPECT_EQ(wide, expected);
#endif
}

/* 14.5.1: extents in the file, from which programs compute portable displacements. */
static void extents_are_of_the_file(void) {
  MPI_Datatype many, spread;
  MPI_Type_contiguous(5, MPI_LONG, &many);
  MPI_Type_commit(&many);
  MPI_Type_vector(3, 1, 4, MPI_LONG, &spread);
  MPI_Type_commit(&spread);
  MPI_File fh = open_view("external32", MPI_LONG, MPI_LONG);
  const MPI_Datatype types[] = {MPI_CHAR,   MPI_WCHAR,         MPI_SHORT,     MPI_INT,
                                MPI_LONG,   MPI_UNSIGNED_LONG, MPI_LONG_LONG, MPI_FLOAT,
                                MPI_DOUBLE, MPI_LONG_DOUBLE,   MPI_INT16_T,   MPI_OFFSET,
                                MPI_AINT};
  const int sizes[] = {1, 2, 2, 4, 4, 4, 8, 4, 8, 16, 2, 8, 8};
  for (int i = 0; i < 13; ++i) expect_extent(fh, types[i], sizes[i]);
  expect_extent(fh, many, 20);
  expect_extent(fh, spread, 36);
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_LONG, MPI_LONG, "native", MPI_INFO_NULL));
  expect_extent(fh, MPI_LONG, sizeof(long));
  expect_extent(fh, spread, 9 * sizeof(long));
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Type_free(&many);
  MPI_Type_free(&spread);
}

/* Views, pointers and offsets use the sizes in the file: every other long, four bytes each. */
static void views_scale(void) {
  long values[6], found[6] = {0};
  MPI_Offset place = -1;
  MPI_Datatype type;
  MPI_Type_vector(3, 1, 2, MPI_LONG, &type);
  MPI_Type_commit(&type);
  MPI_File fh = open_view("external32", MPI_LONG, type);
  EXPECT_OK(MPI_File_get_byte_offset(fh, 5, &place));
  EXPECT_EQ(place, 20 + 16); /* the type's extent is five longs */
  for (int i = 0; i < 6; ++i) values[i] = -1000 * here - i;
  EXPECT_OK(MPI_File_seek(fh, 6 * here, MPI_SEEK_SET));
  EXPECT_OK(MPI_File_write_all(fh, values, 6, MPI_LONG, &status));
  expect_items(&status, MPI_LONG, 6);
  EXPECT_EQ(position_of(fh), 6 * here + 6);
  sync_barrier_sync(fh);
  EXPECT_EQ(file_size_of(fh), 40 * ranks);
  EXPECT_OK(MPI_File_seek(fh, -6, MPI_SEEK_END));
  EXPECT_EQ(position_of(fh), 6 * (ranks - 1));
  EXPECT_OK(MPI_File_read_at_all(fh, 6 * here, found, 6, MPI_LONG, &status));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(found[i], values[i]);
  EXPECT_OK(MPI_File_read_at(fh, 6 * ranks - 2, found, 6, MPI_LONG, &status));
  expect_items(&status, MPI_LONG, 2);
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Type_free(&type);
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  representations_come_back("native");
  representations_come_back("internal");
  representations_come_back("external32");
  external32_is_big_endian();
  extents_are_of_the_file();
  views_scale();
  return end_test();
}
