/* Data representations: external32 against bytes written out by hand, registered ones whose
 * functions must be called, extents, errors, and every kind of call.
 *
 * RANKS: 1 2 4
 * VARIANTS: striped
 * ENV: SHIMA_LOG=error
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <wchar.h>

#include "expect.h"

#define FILE_NAME "datarep.out"

static MPI_File fh;

static void open_as(const char* datarep, MPI_Datatype etype, MPI_Datatype filetype) {
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, FILE_NAME, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                          &fh));
  EXPECT_OK(MPI_File_set_view(fh, 0, etype, filetype, datarep, MPI_INFO_NULL));
}

static void close_file(void) { EXPECT_OK(MPI_File_close(&fh)); }

static void remove_file(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (here == 0) MPI_File_delete(FILE_NAME, MPI_INFO_NULL);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Writes one element of a type from every rank, checks its bytes in the file, and reads it back. */
static void check_element(MPI_Datatype type, const void* value, size_t memory_bytes,
                          const char* in_file, int file_bytes) {
  char raw[64], back[64];
  MPI_Status status;
  MPI_Aint extent = -1;
  int count = -1;
  open_as("external32", type, type);
  EXPECT_OK(MPI_File_get_type_extent(fh, type, &extent));
  EXPECT_EQ(extent, file_bytes);
  EXPECT_OK(MPI_File_write_at_all(fh, here, value, 1, type, &status));
  MPI_Get_count(&status, type, &count);
  EXPECT_EQ(count, 1);
  memset(back, 0x55, sizeof back);
  EXPECT_OK(MPI_File_read_at_all(fh, (here + 1) % ranks, back, 1, type, &status));
  MPI_Get_count(&status, type, &count);
  EXPECT_EQ(count, 1);
  EXPECT(memcmp(back, value, memory_bytes) == 0);
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  EXPECT_OK(MPI_File_read_at(fh, (MPI_Offset)here * file_bytes, raw, file_bytes, MPI_BYTE,
                             MPI_STATUS_IGNORE));
  EXPECT(memcmp(raw, in_file, (size_t)file_bytes) == 0);
  close_file();
  remove_file();
}

static void check_elements(void) {
  const char letter = 'x';
  const short two = 0x0102;
  const int four = 0x01020304;
  const long minus = -3;
  const long long eight = 0x0102030405060708;
  const float real = 1.5F;
  const double dbl = -2.0;
  const wchar_t wide = 0x0141;
  const double complex_number[2] = {1.5, -2.0};
  struct {
    double value;
    int index;
  } pair = {1.5, 7};
  struct {
    long double value;
    char padding_is_not_compared[1];
  } big = {1.5L, {0}};
  check_element(MPI_CHAR, &letter, 1, "x", 1);
  check_element(MPI_SHORT, &two, 2, "\1\2", 2);
  check_element(MPI_INT, &four, 4, "\1\2\3\4", 4);
  check_element(MPI_LONG, &minus, sizeof minus, "\377\377\377\375", 4);
  check_element(MPI_LONG_LONG, &eight, 8, "\1\2\3\4\5\6\7\10", 8);
  check_element(MPI_INT64_T, &eight, 8, "\1\2\3\4\5\6\7\10", 8);
  check_element(MPI_FLOAT, &real, 4, "\x3f\xc0\0\0", 4);
  check_element(MPI_DOUBLE, &dbl, 8, "\xc0\0\0\0\0\0\0\0", 8);
  check_element(MPI_WCHAR, &wide, sizeof wide, "\1\x41", 2);
  check_element(MPI_C_DOUBLE_COMPLEX, complex_number, 16, "\x3f\xf8\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0",
                16);
  check_element(MPI_DOUBLE_INT, &pair, 12, "\x3f\xf8\0\0\0\0\0\0\0\0\0\7", 12);
  check_element(MPI_LONG_DOUBLE, &big.value, 10, "\x3f\xff\x80\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
}

/* Longs, four bytes each in the file, by columns, from memory with gaps. */
static void check_pattern(void) {
  enum { rows = 60, width = 3 };
  MPI_Datatype column, gaps;
  long memory[rows * width * 2], back[rows * width * 2];
  int sizes[2] = {rows, width * ranks}, sub[2] = {rows, width}, start[2] = {0, width * here};
  MPI_Status status;
  MPI_Aint extent = 0;
  int count = -1;
  MPI_Type_create_subarray(2, sizes, sub, start, MPI_ORDER_C, MPI_LONG, &column);
  MPI_Type_commit(&column);
  MPI_Type_vector(rows, width, 2 * width, MPI_LONG, &gaps);
  MPI_Type_commit(&gaps);
  for (int i = 0; i < rows * width * 2; ++i) memory[i] = i % 2 ? -i * 1000L - here : i * 7L + here;
  open_as("external32", MPI_LONG, column);
  EXPECT_OK(MPI_File_get_type_extent(fh, column, &extent));
  EXPECT_EQ(extent, 4 * rows * width * ranks);
  EXPECT_OK(MPI_File_write_all(fh, memory, 1, gaps, &status));
  MPI_Get_count(&status, gaps, &count);
  EXPECT_EQ(count, 1);
  memset(back, 0, sizeof back);
  EXPECT_OK(MPI_File_read_at_all(fh, 0, back, 1, gaps, &status));
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < 2 * width; ++c) {
      const int at = r * 2 * width + c;
      EXPECT_EQ(back[at], c < width ? memory[at] : 0);
    }
  }
  /* One column of one row as bytes. */
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  unsigned char raw[4];
  EXPECT_OK(MPI_File_read_at(fh, 4 * (10 * width * ranks + width * here), raw, 4, MPI_BYTE,
                             MPI_STATUS_IGNORE));
  const int32_t seen =
      (int32_t)((uint32_t)raw[0] << 24 | (uint32_t)raw[1] << 16 | (uint32_t)raw[2] << 8 | raw[3]);
  EXPECT_EQ(seen, memory[10 * 2 * width]);
  close_file();
  remove_file();
  MPI_Type_free(&column);
  MPI_Type_free(&gaps);
}

static void check_too_large(void) {
  const long large = 1L << 40;
  MPI_Offset size = -1;
  open_as("external32", MPI_LONG, MPI_LONG);
  EXPECT_CLASS(MPI_File_write_at(fh, 0, &large, 1, MPI_LONG, MPI_STATUS_IGNORE),
               MPI_ERR_CONVERSION);
  /* An error of one rank is an error on all. */
  const long value = here == ranks - 1 ? large : 1;
  EXPECT_CLASS(MPI_File_write_at_all(fh, here, &value, 1, MPI_LONG, MPI_STATUS_IGNORE),
               MPI_ERR_CONVERSION);
  /* The other ranks may have written their values. */
  EXPECT_OK(MPI_File_get_size(fh, &size));
  EXPECT(size <= 4 * (ranks - 1));
  close_file();
  remove_file();
}

/* A file that ends within an item of the memory type. */
static void check_end_of_file(void) {
  struct pair {
    int first;
    long second;
  } value = {5, 6}, back[3];
  MPI_Datatype both;
  MPI_Status status;
  int lens[2] = {1, 1}, elements = -1;
  MPI_Aint displacements[2] = {offsetof(struct pair, first), offsetof(struct pair, second)};
  MPI_Datatype types[2] = {MPI_INT, MPI_LONG}, memory_type;
  MPI_Type_create_struct(2, lens, displacements, types, &both);
  MPI_Type_create_resized(both, 0, sizeof(struct pair), &memory_type);
  MPI_Type_commit(&memory_type);
  remove_file();
  open_as("external32", MPI_BYTE, MPI_BYTE);
  if (here == 0) {
    EXPECT_OK(MPI_File_write_at(fh, 0, &value, 1, memory_type, MPI_STATUS_IGNORE));
    EXPECT_OK(MPI_File_write_at(fh, 8, &value.first, 1, MPI_INT, MPI_STATUS_IGNORE));
  }
  EXPECT_OK(MPI_File_sync(fh));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 3; ++i) back[i] = (struct pair){-1, 1L << 40};
  EXPECT_OK(MPI_File_read_at(fh, 0, back, 3, memory_type, &status));
  MPI_Get_elements(&status, memory_type, &elements);
  EXPECT_EQ(elements, 3);
  EXPECT_EQ(back[0].first, 5);
  EXPECT_EQ(back[0].second, 6);
  EXPECT_EQ(back[1].first, 5);
  EXPECT_EQ(back[1].second, 1L << 40);
  EXPECT_EQ(back[2].first, -1);
  close_file();
  remove_file();
  MPI_Type_free(&both);
  MPI_Type_free(&memory_type);
}

/* A representation of the test: an int is ten decimal digits. */
static int reads, writes;

static int extent_of(MPI_Datatype type, MPI_Aint* bytes, void* extra) {
  (void)type;
  EXPECT(extra == &reads);
  *bytes = 10;
  return MPI_SUCCESS;
}

static int* place_in(void* buffer, MPI_Datatype type, int item) {
  MPI_Aint lower_bound, extent;
  int size;
  MPI_Type_get_extent(type, &lower_bound, &extent);
  MPI_Type_size(type, &size);
  const int ints = size / (int)sizeof(int);
  return (int*)((char*)buffer + item / ints * extent) + item % ints;
}

static int from_digits(void* buffer, MPI_Datatype type, int count, void* file, MPI_Offset position,
                       void* extra) {
  EXPECT(extra == &reads);
  ++reads;
  for (int i = 0; i < count; ++i) {
    char digits[11] = {0};
    memcpy(digits, (char*)file + 10 * i, 10);
    *place_in(buffer, type, (int)position + i) = atoi(digits);
  }
  return MPI_SUCCESS;
}

static int to_digits(void* buffer, MPI_Datatype type, int count, void* file, MPI_Offset position,
                     void* extra) {
  EXPECT(extra == &reads);
  ++writes;
  for (int i = 0; i < count; ++i) {
    char digits[30];
    const int value = *place_in(buffer, type, (int)position + i);
    if (value < 0) return MPI_ERR_OTHER;
    snprintf(digits, sizeof digits, "%010d", value);
    memcpy((char*)file + 10 * i, digits, 10);
  }
  return MPI_SUCCESS;
}

static void expect_ints(const int* values, int count, int first) {
  for (int i = 0; i < count; ++i) EXPECT_EQ(values[i], first + i);
}

static void check_registered(void) {
  enum { count = 20 };
  int values[count], back[count];
  char digits[11] = {0}, expected[30];
  MPI_Request request;
  MPI_Status status;
  MPI_Aint extent = 0;
  MPI_Offset size = 0;
  int n = -1;
  EXPECT_OK(MPI_Register_datarep("digits", from_digits, to_digits, extent_of, &reads));
  EXPECT_CLASS(MPI_Register_datarep("digits", from_digits, to_digits, extent_of, &reads),
               MPI_ERR_DUP_DATAREP);
  EXPECT_CLASS(MPI_Register_datarep("native", from_digits, to_digits, extent_of, &reads),
               MPI_ERR_DUP_DATAREP);
  for (int i = 0; i < count; ++i) values[i] = 1000 * here + i;
  open_as("digits", MPI_INT, MPI_INT);
  EXPECT_OK(MPI_File_get_type_extent(fh, MPI_INT, &extent));
  EXPECT_EQ(extent, 10);
  EXPECT_OK(MPI_File_write_at_all(fh, count * here, values, count, MPI_INT, &status));
  MPI_Get_count(&status, MPI_INT, &n);
  EXPECT_EQ(n, count);
  EXPECT(writes > 0);
  EXPECT_OK(MPI_File_get_size(fh, &size));
  EXPECT_EQ(size, 10 * count * ranks);

  memset(back, 0, sizeof back);
  EXPECT_OK(MPI_File_iread_at(fh, count * here, back, count, MPI_INT, &request));
  EXPECT_OK(MPI_Wait(&request, &status));
  MPI_Get_count(&status, MPI_INT, &n);
  EXPECT_EQ(n, count);
  expect_ints(back, count, 1000 * here);
  EXPECT(reads > 0);

  memset(back, 0, sizeof back);
  EXPECT_OK(MPI_File_read_at_all_begin(fh, count * here, back, count, MPI_INT));
  EXPECT_OK(MPI_File_read_at_all_end(fh, back, &status));
  expect_ints(back, count, 1000 * here);

  memset(back, 0, sizeof back);
  EXPECT_OK(MPI_File_read_ordered(fh, back, count, MPI_INT, &status));
  expect_ints(back, count, 1000 * here);

  values[0] = -1;
  EXPECT_CLASS(MPI_File_write_at_all(fh, 0, values, 1, MPI_INT, &status), MPI_ERR_CONVERSION);

  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL));
  EXPECT_OK(MPI_File_read_at(fh, 10 * (count * here + 3), digits, 10, MPI_CHAR, MPI_STATUS_IGNORE));
  snprintf(expected, sizeof expected, "%010d", 1000 * here + 3);
  EXPECT(strcmp(digits, expected) == 0);
  close_file();
  remove_file();
}

static void check_refusals(void) {
  open_as("internal", MPI_INT, MPI_INT);
  EXPECT_CLASS(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "nobody's", MPI_INFO_NULL),
               MPI_ERR_UNSUPPORTED_DATAREP);
  if (ranks > 1) {
    EXPECT_CLASS(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, here == 1 ? "external32" : "native",
                                   MPI_INFO_NULL),
                 MPI_ERR_NOT_SAME);
    EXPECT_CLASS(MPI_File_set_view(fh, 0, here == 1 ? MPI_DOUBLE : MPI_INT,
                                   here == 1 ? MPI_DOUBLE : MPI_INT, "native", MPI_INFO_NULL),
                 MPI_ERR_NOT_SAME);
  }
  char datarep[MPI_MAX_DATAREP_STRING];
  MPI_Offset displacement;
  MPI_Datatype etype, filetype;
  EXPECT_OK(MPI_File_get_view(fh, &displacement, &etype, &filetype, datarep));
  EXPECT(strcmp(datarep, "internal") == 0);
  close_file();
  remove_file();
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  check_elements();
  check_pattern();
  check_too_large();
  check_end_of_file();
  check_registered();
  check_refusals();
  return end_test();
}
