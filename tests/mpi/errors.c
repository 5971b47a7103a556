/* Errors: each mistake returns its class, through the right error handler, on every rank that takes
 * part.
 *
 * RANKS: 1 2 4
 * VARIANTS: striped
 * ENV: SHIMA_LOG=error
 */
#include <string.h>
#include <unistd.h>

#include "expect.h"

static const char* name = "errors.out";

static int calls;
static MPI_File called_with;
static int called_class;

static void count_call(MPI_File* file, int* error, ...) {
  calls++;
  called_with = *file;
  called_class = class_of(*error);
}

static MPI_File open_as(int amode) {
  MPI_File fh;
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &fh));
  return fh;
}

static void expect_open(int amode, int expected) {
  MPI_File fh;
  EXPECT_CLASS(MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &fh), expected);
  if (expected == MPI_SUCCESS) EXPECT_OK(MPI_File_close(&fh));
}

static void test_open(void) {
  MPI_File fh;
  expect_open(MPI_MODE_RDONLY, MPI_ERR_NO_SUCH_FILE);
  expect_open(0, MPI_ERR_AMODE);
  expect_open(MPI_MODE_RDONLY | MPI_MODE_RDWR, MPI_ERR_AMODE);
  expect_open(MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_ERR_AMODE);
  expect_open(MPI_MODE_RDONLY | MPI_MODE_EXCL, MPI_ERR_AMODE);
  expect_open(MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL | MPI_MODE_CREATE, MPI_ERR_AMODE);
  expect_open(MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_SUCCESS);
  expect_open(MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_ERR_FILE_EXISTS);
  expect_open(MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_SUCCESS);
  EXPECT(class_of(MPI_File_open(MPI_COMM_WORLD, "no/such/directory/file",
                                MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &fh)) !=
         MPI_SUCCESS);
  if (ranks > 1) {
    expect_open(here == 0 ? MPI_MODE_RDONLY : MPI_MODE_RDWR, MPI_ERR_NOT_SAME);
    /* one rank's mistake fails all of them, and no rank hangs */
    EXPECT(class_of(MPI_File_open(MPI_COMM_WORLD, name, here == 1 ? 0 : MPI_MODE_RDWR,
                                  MPI_INFO_NULL, &fh)) != MPI_SUCCESS);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (here == 0) EXPECT_OK(MPI_File_delete(name, MPI_INFO_NULL));
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_CLASS(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
}

static void test_modes(void) {
  int value = 1;
  MPI_Offset position;
  MPI_File fh = open_as(MPI_MODE_WRONLY | MPI_MODE_CREATE);
  EXPECT_CLASS(MPI_File_read_at(fh, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
  EXPECT_CLASS(MPI_File_read_all(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
  EXPECT_OK(MPI_File_close(&fh));
  fh = open_as(MPI_MODE_RDONLY);
  EXPECT_CLASS(MPI_File_write(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
  EXPECT_CLASS(MPI_File_write_at_all(fh, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE),
               MPI_ERR_READ_ONLY);
  EXPECT_CLASS(MPI_File_set_size(fh, 10), MPI_ERR_READ_ONLY);
  EXPECT_CLASS(MPI_File_preallocate(fh, 10), MPI_ERR_READ_ONLY);
  EXPECT_OK(MPI_File_close(&fh));
  fh = open_as(MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  EXPECT_CLASS(MPI_File_seek(fh, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT_CLASS(MPI_File_get_position(fh, &position), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT_CLASS(MPI_File_write_at(fh, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE),
               MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT_OK(MPI_File_close(&fh));
}

static void test_arguments(void) {
  int value = 1;
  MPI_File fh = open_as(MPI_MODE_RDWR);
  MPI_Datatype uncommitted;
  MPI_Offset place;
  MPI_Type_vector(2, 1, 2, MPI_INT, &uncommitted);
  EXPECT_CLASS(MPI_File_write_at(fh, -1, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
  EXPECT_CLASS(MPI_File_write_at(fh, 0, &value, -1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_COUNT);
  EXPECT_CLASS(MPI_File_write(fh, &value, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
  EXPECT_CLASS(MPI_File_write(fh, &value, 1, uncommitted, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
  EXPECT_CLASS(MPI_File_seek(fh, 0, 4711), MPI_ERR_ARG);
  EXPECT_CLASS(MPI_File_set_size(fh, -1), MPI_ERR_ARG);
  EXPECT_CLASS(MPI_File_preallocate(fh, -1), MPI_ERR_ARG);
  EXPECT_CLASS(MPI_File_get_byte_offset(fh, -1, &place), MPI_ERR_ARG);
  if (ranks > 1) EXPECT_CLASS(MPI_File_set_size(fh, 10 + here), MPI_ERR_NOT_SAME);
  EXPECT_CLASS(MPI_File_set_view(fh, 0, uncommitted, uncommitted, "native", MPI_INFO_NULL),
               MPI_ERR_TYPE);
  /* one rank's mistake in a collective reaches all of them */
  EXPECT_CLASS(
      MPI_File_write_at_all(fh, here == ranks - 1 ? -1 : 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE),
      MPI_ERR_ARG);
  EXPECT_CLASS(
      MPI_File_read_all(fh, &value, here == ranks - 1 ? -1 : 1, MPI_INT, MPI_STATUS_IGNORE),
      MPI_ERR_COUNT);
  MPI_Type_free(&uncommitted);
  EXPECT_OK(MPI_File_close(&fh));
}

static int set_view(MPI_File fh, MPI_Offset displacement, MPI_Datatype etype,
                    MPI_Datatype filetype) {
  return MPI_File_set_view(fh, displacement, etype, filetype, "native", MPI_INFO_NULL);
}

static void test_views(void) {
  int places[2] = {4, 0}, lens[2] = {2, 1}, overlapping_places[2] = {0, 1};
  MPI_Aint negative_place = -4;
  int one = 1;
  MPI_Datatype decreasing, overlapping, negative;
  MPI_Type_create_indexed_block(2, 1, places, MPI_INT, &decreasing);
  MPI_Type_commit(&decreasing);
  MPI_Type_indexed(2, lens, overlapping_places, MPI_INT, &overlapping);
  MPI_Type_commit(&overlapping);
  MPI_Type_create_hindexed(1, &one, &negative_place, MPI_INT, &negative);
  MPI_Type_commit(&negative);
  MPI_File fh = open_as(MPI_MODE_RDWR);
  EXPECT_CLASS(set_view(fh, 0, MPI_INT, decreasing), MPI_ERR_TYPE);
  EXPECT_CLASS(set_view(fh, 0, MPI_INT, overlapping), MPI_ERR_TYPE);
  EXPECT_CLASS(set_view(fh, 0, MPI_INT, negative), MPI_ERR_TYPE);
  EXPECT_CLASS(set_view(fh, 0, MPI_INT, MPI_BYTE), MPI_ERR_TYPE);
  EXPECT_CLASS(set_view(fh, 0, MPI_INT, MPI_DATATYPE_NULL), MPI_ERR_TYPE);
  EXPECT_CLASS(set_view(fh, -1, MPI_INT, MPI_INT), MPI_ERR_ARG);
  EXPECT_CLASS(set_view(fh, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT), MPI_ERR_ARG);
  EXPECT_CLASS(set_view(fh, 0, MPI_INT, here == 0 ? decreasing : MPI_INT), MPI_ERR_TYPE);
  EXPECT_CLASS(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "no such rep", MPI_INFO_NULL),
               MPI_ERR_UNSUPPORTED_DATAREP);
  EXPECT_OK(MPI_File_close(&fh));
  fh = open_as(MPI_MODE_RDONLY);
  EXPECT_CLASS(set_view(fh, 0, MPI_INT, decreasing), MPI_ERR_TYPE);
  EXPECT_OK(set_view(fh, 0, MPI_INT, overlapping)); /* legal for reading */
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Type_free(&decreasing);
  MPI_Type_free(&overlapping);
  MPI_Type_free(&negative);
}

static void test_handles(void) {
  MPI_File null = MPI_FILE_NULL, wild = (MPI_File)&calls;
  MPI_Offset size;
  EXPECT_CLASS(MPI_File_close(&null), MPI_ERR_FILE);
  EXPECT_CLASS(MPI_File_get_size(null, &size), MPI_ERR_FILE);
  EXPECT_CLASS(MPI_File_get_size(wild, &size), MPI_ERR_FILE);
  MPI_File fh = open_as(MPI_MODE_RDWR), closed = fh;
  EXPECT_OK(MPI_File_close(&fh));
  EXPECT_CLASS(MPI_File_get_size(closed, &size), MPI_ERR_FILE);
}

static void test_error_handlers(void) {
  MPI_Errhandler mine, got, original;
  MPI_File fh = open_as(MPI_MODE_RDWR);
  MPI_File failed;
  EXPECT_OK(MPI_File_get_errhandler(fh, &got));
  EXPECT(got == MPI_ERRORS_RETURN);
  for (int i = 0; i < 100; ++i) { /* every handle returned is freed, predefined or not */
    EXPECT_OK(MPI_File_get_errhandler(fh, &got));
    EXPECT_OK(MPI_File_set_errhandler(fh, got));
    EXPECT_OK(MPI_Errhandler_free(&got));
    EXPECT_OK(MPI_File_get_errhandler(MPI_FILE_NULL, &got));
    EXPECT_OK(MPI_Errhandler_free(&got));
  }
  EXPECT_OK(MPI_File_create_errhandler(count_call, &mine));
  EXPECT_OK(MPI_File_set_errhandler(fh, mine));
  EXPECT_OK(MPI_File_get_errhandler(fh, &got));
  EXPECT(got == mine);
  MPI_Errhandler_free(&got);
  MPI_Errhandler_free(&mine); /* the file keeps it */
  calls = 0;
  EXPECT_CLASS(MPI_File_seek(fh, -1, MPI_SEEK_SET), MPI_ERR_ARG);
  EXPECT_EQ(calls, 1);
  EXPECT(called_with == fh);
  EXPECT_EQ(called_class, MPI_ERR_ARG);
  EXPECT_OK(MPI_File_get_errhandler(fh, &got));
  EXPECT_OK(MPI_File_call_errhandler(fh, MPI_ERR_IO));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(called_class, MPI_ERR_IO);
  EXPECT_OK(MPI_File_close(&fh));

  /* MPI_FILE_NULL's handler is called for failed opens, and is the default of later files */
  EXPECT_OK(MPI_File_get_errhandler(MPI_FILE_NULL, &original));
  EXPECT(original == MPI_ERRORS_RETURN);
  EXPECT_OK(MPI_File_set_errhandler(MPI_FILE_NULL, got));
  MPI_Errhandler_free(&got);
  calls = 0;
  EXPECT_CLASS(
      MPI_File_open(MPI_COMM_WORLD, "no.such.file", MPI_MODE_RDONLY, MPI_INFO_NULL, &failed),
      MPI_ERR_NO_SUCH_FILE);
  EXPECT_EQ(calls, 1);
  EXPECT(called_with == MPI_FILE_NULL);
  EXPECT_CLASS(MPI_File_delete("no.such.file", MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
  EXPECT_EQ(calls, 2);
  fh = open_as(MPI_MODE_RDWR);
  EXPECT_CLASS(MPI_File_seek(fh, -1, MPI_SEEK_SET), MPI_ERR_ARG);
  EXPECT_EQ(calls, 3);
  EXPECT_OK(MPI_File_set_errhandler(fh, MPI_ERRORS_RETURN));
  EXPECT_CLASS(MPI_File_seek(fh, -1, MPI_SEEK_SET), MPI_ERR_ARG);
  EXPECT_EQ(calls, 3);
  EXPECT_OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
  EXPECT_OK(MPI_File_close(&fh));
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  test_open();
  test_modes();
  test_arguments();
  test_views();
  test_handles();
  test_error_handlers();
  MPI_Barrier(MPI_COMM_WORLD);
  if (here == 0) unlink(name);
  return end_test();
}
