/* MPI-4.1, section 14.9 and the examples before it: double buffering by split collective writes, a
 * matrix by subarrays, reading until the end of the file, portable offsets in a file of headers and
 * arrays, a log that all ranks write.
 *
 * RANKS: 1 2 4 7
 * ENV: SHIMA_LOG=error
 */
#include "mpi/expect.h"

static MPI_Status status;

enum { buffer_ints = 500, buffers = 9 };

static void compute(int* buffer, int nth) {
  for (int i = 0; i < buffer_ints; ++i) buffer[i] = (nth * ranks + here) * buffer_ints + i;
}

/* 14.9.1: one buffer is filled while the other is written. */
static void double_buffering(void) {
  static int both[2][buffer_ints];
  MPI_Datatype block, type;
  MPI_File fh = open_fresh("double.out");
  MPI_Type_contiguous(buffer_ints, MPI_INT, &block);
  MPI_Type_create_resized(block, 0, (MPI_Aint)sizeof both[0] * ranks, &type);
  MPI_Type_commit(&type);
  view_native(fh, here * (MPI_Offset)sizeof both[0], MPI_INT, type);
  compute(both[0], 0);
  EXPECT_OK(MPI_File_write_all_begin(fh, both[0], buffer_ints, MPI_INT));
  for (int nth = 1; nth < buffers; ++nth) {
    compute(both[nth % 2], nth);
    EXPECT_OK(MPI_File_write_all_end(fh, both[(nth - 1) % 2], &status));
    expect_items(&status, MPI_INT, buffer_ints);
    EXPECT_OK(MPI_File_write_all_begin(fh, both[nth % 2], buffer_ints, MPI_INT));
  }
  EXPECT_OK(MPI_File_write_all_end(fh, both[(buffers - 1) % 2], &status));
  EXPECT_OK(MPI_File_close(&fh));
  long long size;
  int* all = (int*)contents_of("double.out", &size);
  EXPECT_EQ(size, (long long)sizeof both[0] * buffers * ranks);
  for (int i = 0; i < buffers * ranks * buffer_ints; ++i) EXPECT_EQ(all[i], i);
  free(all);
  MPI_Type_free(&block);
  MPI_Type_free(&type);
}

/* 14.9.2: a matrix of floats in the file, its columns distributed in blocks; each rank's part has a
 * margin around it in memory. */
static void subarrays(void) {
  enum { rows = 40, width = 6, margin = 2, held = width + 2 * margin };
  static float memory[rows][held];
  int in_file[2] = {rows, width * ranks}, in_memory[2] = {rows, held}, part[2] = {rows, width};
  int at[2] = {0, width * here}, inner[2] = {0, margin};
  MPI_Datatype filetype, memory_type;
  MPI_Type_create_subarray(2, in_file, part, at, MPI_ORDER_C, MPI_FLOAT, &filetype);
  MPI_Type_commit(&filetype);
  MPI_Type_create_subarray(2, in_memory, part, inner, MPI_ORDER_C, MPI_FLOAT, &memory_type);
  MPI_Type_commit(&memory_type);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < held; ++c)
      memory[r][c] = (float)(r * width * ranks + here * width + c - margin);
  MPI_File fh = open_fresh("subarray.out");
  view_native(fh, 0, MPI_FLOAT, filetype);
  EXPECT_OK(MPI_File_write_all(fh, memory, 1, memory_type, &status));
  expect_items(&status, memory_type, 1);
  memset(memory, 0, sizeof memory);
  EXPECT_OK(MPI_File_read_at_all(fh, 0, memory, 1, memory_type, &status));
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < held; ++c)
      EXPECT(memory[r][c] == (c < margin || c >= margin + width
                                  ? 0
                                  : (float)(r * width * ranks + here * width + c - margin)));
  EXPECT_OK(MPI_File_close(&fh));
  long long size;
  float* all = (float*)contents_of("subarray.out", &size);
  EXPECT_EQ(size, (long long)sizeof(float) * rows * width * ranks);
  for (int i = 0; i < rows * width * ranks; ++i) EXPECT(all[i] == (float)i);
  free(all);
  MPI_Type_free(&filetype);
  MPI_Type_free(&memory_type);
}

/* 14.4.3: the last read returns fewer items than requested. */
static void reading_until_the_end(void) {
  enum { all = 1234, at_once = 100 };
  char name[40];
  int data[all], buffer[at_once], count = at_once, total = 0;
  snprintf(name, sizeof name, "until.%d.out", here);
  for (int i = 0; i < all; ++i) data[i] = i;
  MPI_File fh = open_self(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
  view_native(fh, 0, MPI_INT, MPI_INT);
  EXPECT_OK(MPI_File_write(fh, data, all, MPI_INT, &status));
  EXPECT_OK(MPI_File_seek(fh, 0, MPI_SEEK_SET));
  while (count == at_once) {
    EXPECT_OK(MPI_File_read(fh, buffer, at_once, MPI_INT, &status));
    MPI_Get_count(&status, MPI_INT, &count);
    for (int i = 0; i < count; ++i) EXPECT_EQ(buffer[i], total + i);
    total += count;
  }
  EXPECT_EQ(total, all);
  EXPECT_OK(MPI_File_close(&fh));
}

/* 14.5.1: a header and an array for each rank, at offsets computed from extents in the file, so
 * that the program is right in every representation. */
static void portable_places(const char* datarep) {
  enum { each = 25 };
  const int header[2] = {ranks, each};
  double data[each], found[each];
  MPI_Aint of_int = 0, of_double = 0;
  MPI_File fh = open_fresh("portable.out");
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, datarep, MPI_INFO_NULL));
  EXPECT_OK(MPI_File_get_type_extent(fh, MPI_INT, &of_int));
  EXPECT_OK(MPI_File_get_type_extent(fh, MPI_DOUBLE, &of_double));
  EXPECT_OK(MPI_File_write_all(fh, header, here == 0 ? 2 : 0, MPI_INT, &status));
  EXPECT_OK(MPI_File_set_view(fh, 2 * of_int + here * each * of_double, MPI_DOUBLE, MPI_DOUBLE,
                              datarep, MPI_INFO_NULL));
  for (int i = 0; i < each; ++i) data[i] = here + i / 3.0;
  EXPECT_OK(MPI_File_write_all(fh, data, each, MPI_DOUBLE, &status));
  sync_barrier_sync(fh);
  EXPECT_EQ(file_size_of(fh), 2 * of_int + ranks * each * of_double);
  EXPECT_OK(MPI_File_read_at_all(fh, 0, found, each, MPI_DOUBLE, &status));
  EXPECT(memcmp(data, found, sizeof data) == 0);
  EXPECT_OK(MPI_File_close(&fh));
}

/* 14.4.4: lines of different lengths from all ranks, in one log that is only appended to. */
static void a_log_of_all(void) {
  enum { lines = 20 };
  char line[60];
  int seen = 0;
  for (int round = 0; round < 2; ++round) {
    MPI_File fh = open_world("log.out", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_APPEND);
    for (int i = 0; i < lines; ++i) {
      const int n = snprintf(line, sizeof line, "rank %d says %d%.*s\n", here, round * lines + i,
                             (here + i) % 10, "..........");
      EXPECT_OK(MPI_File_write_shared(fh, line, n, MPI_CHAR, MPI_STATUS_IGNORE));
    }
    EXPECT_OK(MPI_File_close(&fh));
  }
  FILE* log = fopen("log.out", "r");
  EXPECT(log != NULL);
  int said[16] = {0};
  for (int rank, i; fscanf(log, "rank %d says %d%*[.\n]", &rank, &i) == 2; ++seen)
    EXPECT_EQ(i, said[rank]++); /* a rank's own lines are in its order */
  EXPECT(feof(log));
  EXPECT_EQ(seen, 2 * lines * ranks);
  fclose(log);
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  double_buffering();
  subarrays();
  reading_until_the_end();
  portable_places("native");
  portable_places("internal");
  portable_places("external32");
  a_log_of_all();
  return end_test();
}
