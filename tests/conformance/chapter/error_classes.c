/* MPI-4.1, section 14.8: every class of I/O error that can be provoked without a special machine,
 * in one program: the class is returned, it has a text, and the file is usable afterwards.
 * MPI_ERR_QUOTA is left out, and MPI_ERR_ACCESS for users who bypass permission checks.
 *
 * RANKS: 1 2 4
 * VARIANTS: striped
 * ENV: SHIMA_LOG=off
 */
#include "mpi/expect.h"

static const char* const name = "classes.out";
static char own[40];

/* Makes a call, compares the class, and gets the text of the code. */
#define EXPECT_ERROR(call, expected) expect_error((call), expected, #call, __LINE__)

static void expect_error(int code, int expected, const char* what, int line) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  expect_equal(class_of(code), expected, what, line);
  EXPECT_OK(MPI_Error_string(code, text, &length));
  EXPECT(length > 0 && length < MPI_MAX_ERROR_STRING);
}

static int open_as(const char* path, int amode) {
  MPI_File fh = MPI_FILE_NULL;
  const int code = MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &fh);
  if (code == MPI_SUCCESS) EXPECT_OK(MPI_File_close(&fh));
  return code;
}

static void file_names(void) {
  static char longest[5000];
  memset(longest, 'n', sizeof longest - 1);
  EXPECT_ERROR(open_as("absent", MPI_MODE_RDWR), MPI_ERR_NO_SUCH_FILE);
  EXPECT_ERROR(open_as("absent/file", MPI_MODE_RDWR | MPI_MODE_CREATE), MPI_ERR_NO_SUCH_FILE);
  EXPECT_ERROR(MPI_File_delete("absent", MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
  EXPECT_ERROR(open_as(name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL), MPI_ERR_FILE_EXISTS);
  EXPECT_ERROR(open_as(longest, MPI_MODE_RDWR | MPI_MODE_CREATE), MPI_ERR_BAD_FILE);
  EXPECT_ERROR(open_as(name, MPI_MODE_RDWR | MPI_MODE_WRONLY), MPI_ERR_AMODE);
  EXPECT_ERROR(open_as(name, MPI_MODE_CREATE), MPI_ERR_AMODE);
  EXPECT_OK(open_as(name, MPI_MODE_RDWR));
}

static void handles(void) {
  MPI_File null = MPI_FILE_NULL, fh = open_world(name, MPI_MODE_RDWR), closed = fh;
  MPI_Offset size;
  MPI_Status status;
  EXPECT_OK(MPI_File_close(&fh));
  EXPECT_ERROR(MPI_File_get_size(closed, &size), MPI_ERR_FILE);
  EXPECT_ERROR(MPI_File_close(&closed), MPI_ERR_FILE);
  EXPECT_ERROR(MPI_File_write_all(null, &size, 1, MPI_OFFSET, &status), MPI_ERR_FILE);
  EXPECT_ERROR(MPI_File_set_view(null, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_FILE);
}

static void what_ranks_must_share(void) {
  if (ranks == 1) return;
  EXPECT_ERROR(open_as(name, here ? MPI_MODE_RDWR : MPI_MODE_RDONLY), MPI_ERR_NOT_SAME);
  MPI_File fh = open_world(name, MPI_MODE_RDWR);
  EXPECT_ERROR(MPI_File_set_size(fh, here), MPI_ERR_NOT_SAME);
  EXPECT_ERROR(MPI_File_preallocate(fh, 100 + here), MPI_ERR_NOT_SAME);
  EXPECT_ERROR(MPI_File_set_atomicity(fh, here == 0), MPI_ERR_NOT_SAME);
  EXPECT_ERROR(MPI_File_seek_shared(fh, here, MPI_SEEK_SET), MPI_ERR_NOT_SAME);
  EXPECT_OK(MPI_File_set_size(fh, 4));
  EXPECT_EQ(file_size_of(fh), 4);
  EXPECT_OK(MPI_File_close(&fh));
}

static void permissions(void) {
  int value = 1;
  MPI_Status status;
  MPI_File fh = open_world(name, MPI_MODE_RDONLY);
  EXPECT_ERROR(MPI_File_write(fh, &value, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
  EXPECT_ERROR(MPI_File_write_all(fh, &value, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
  EXPECT_ERROR(MPI_File_write_ordered(fh, &value, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
  EXPECT_ERROR(MPI_File_set_size(fh, 1), MPI_ERR_READ_ONLY);
  EXPECT_OK(MPI_File_read_at_all(fh, 0, &value, 1, MPI_INT, &status));
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Barrier(MPI_COMM_WORLD);
  if (here == 0) EXPECT_EQ(chmod(name, 0), 0);
  MPI_Barrier(MPI_COMM_WORLD);
  const int may_all = access(name, R_OK) == 0;
  EXPECT_CLASS(open_as(name, MPI_MODE_RDONLY), may_all ? MPI_SUCCESS : MPI_ERR_ACCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  if (here == 0) EXPECT_EQ(chmod(name, 0600), 0);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void operations_that_are_not_supported(void) {
  int value = 1;
  MPI_Status status;
  MPI_File fh = open_world(name, MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  EXPECT_ERROR(MPI_File_write_at(fh, 0, &value, 1, MPI_INT, &status),
               MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT_ERROR(MPI_File_write_all(fh, &value, 1, MPI_INT, &status), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT_ERROR(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT_OK(MPI_File_write_shared(fh, &value, 1, MPI_INT, &status));
  EXPECT_OK(MPI_File_close(&fh));
}

static int failing(void* buffer, MPI_Datatype type, int count, void* file, MPI_Offset position,
                   void* extra) {
  (void)buffer, (void)type, (void)count, (void)file, (void)position, (void)extra;
  return MPI_ERR_OTHER;
}

static int int_extent(MPI_Datatype type, MPI_Aint* extent, void* extra) {
  (void)type, (void)extra;
  *extent = 4;
  return MPI_SUCCESS;
}

static void representations(void) {
  int value = 1;
  long too_large = 1L << 40;
  MPI_Status status;
  MPI_File fh = open_world(name, MPI_MODE_RDWR);
  EXPECT_ERROR(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "unheard of", MPI_INFO_NULL),
               MPI_ERR_UNSUPPORTED_DATAREP);
  EXPECT_OK(MPI_Register_datarep("failing", failing, failing, int_extent, NULL));
  EXPECT_ERROR(MPI_Register_datarep("failing", failing, failing, int_extent, NULL),
               MPI_ERR_DUP_DATAREP);
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "failing", MPI_INFO_NULL));
  EXPECT_ERROR(MPI_File_write_at(fh, 0, &value, 1, MPI_INT, &status), MPI_ERR_CONVERSION);
  EXPECT_ERROR(MPI_File_write_at_all(fh, 0, &value, 1, MPI_INT, &status), MPI_ERR_CONVERSION);
  if (sizeof(long) > 4) {
    EXPECT_OK(MPI_File_set_view(fh, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL));
    EXPECT_ERROR(MPI_File_write(fh, &too_large, 1, MPI_LONG, &status), MPI_ERR_CONVERSION);
  }
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  EXPECT_OK(MPI_File_write_at(fh, here, &value, 1, MPI_INT, &status));
  EXPECT_OK(MPI_File_close(&fh));
}

/* Linux has a device that is always full. */
static void no_space(void) {
  int value = 1;
  MPI_Status status;
  MPI_Request request;
  MPI_File fh = open_world("/dev/full", MPI_MODE_WRONLY);
  EXPECT_ERROR(MPI_File_write_at(fh, 0, &value, 1, MPI_INT, &status), MPI_ERR_NO_SPACE);
  EXPECT_ERROR(MPI_File_write_at_all(fh, here, &value, 1, MPI_INT, &status), MPI_ERR_NO_SPACE);
  EXPECT_ERROR(MPI_File_write_shared(fh, &value, 1, MPI_INT, &status), MPI_ERR_NO_SPACE);
  EXPECT_OK(MPI_File_iwrite_at(fh, 0, &value, 1, MPI_INT, &request));
  EXPECT_ERROR(MPI_Wait(&request, &status), MPI_ERR_NO_SPACE);
  EXPECT_OK(MPI_File_write_all_begin(fh, &value, 1, MPI_INT));
  EXPECT_ERROR(MPI_File_write_all_end(fh, &value, &status), MPI_ERR_NO_SPACE);
  EXPECT_OK(MPI_File_close(&fh));
}

/* Address 0 of a process is not readable; a running program is not writable on most kernels. */
static void from_the_disk(const char* program) {
  int value = 1;
  MPI_Status status;
  MPI_File fh = open_self("/proc/self/mem", MPI_MODE_RDONLY);
  EXPECT_ERROR(MPI_File_read_at(fh, 0, &value, 1, MPI_INT, &status), MPI_ERR_IO);
  EXPECT_ERROR(MPI_File_read_at_all(fh, 0, &value, 1, MPI_INT, &status), MPI_ERR_IO);
  EXPECT_OK(MPI_File_close(&fh));
  const int code = open_as(program, MPI_MODE_RDWR);
  if (code != MPI_SUCCESS && class_of(code) != MPI_ERR_ACCESS)
    EXPECT_ERROR(code, MPI_ERR_FILE_IN_USE);
}

static void arguments(void) {
  int value = 1;
  MPI_Status status;
  MPI_File fh = open_self(own, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE), other;
  EXPECT_ERROR(MPI_File_write(fh, &value, -1, MPI_INT, &status), MPI_ERR_COUNT);
  EXPECT_ERROR(MPI_File_write(fh, &value, 1, MPI_DATATYPE_NULL, &status), MPI_ERR_TYPE);
  EXPECT_ERROR(MPI_File_read_at(fh, -1, &value, 1, MPI_INT, &status), MPI_ERR_ARG);
  EXPECT_ERROR(MPI_File_seek(fh, 0, -12345), MPI_ERR_ARG);
  EXPECT_ERROR(MPI_File_open(MPI_COMM_NULL, own, MPI_MODE_RDWR, MPI_INFO_NULL, &other),
               MPI_ERR_COMM);
  EXPECT_OK(MPI_File_write(fh, &value, 1, MPI_INT, &status));
  EXPECT_EQ(file_size_of(fh), (int)sizeof value);
  EXPECT_OK(MPI_File_close(&fh));
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  snprintf(own, sizeof own, "own.%d.out", here);
  EXPECT_OK(open_as(name, MPI_MODE_RDWR | MPI_MODE_CREATE));
  file_names();
  handles();
  what_ranks_must_share();
  permissions();
  operations_that_are_not_supported();
  representations();
  no_space();
  from_the_disk(argv[0]);
  arguments();
  return end_test();
}
