/* MPI-4.1, section 14.5.3: representations that a program registers. Its functions are called for
 * every access, with its state; a name can be registered once; their errors fail the call.
 *
 * RANKS: 1 2 4
 * VARIANTS: striped
 * ENV: SHIMA_LOG=off
 */
#include "mpi/expect.h"

static const char* const name = "representation.out";

static MPI_Status status;

static MPI_File open_view(const char* datarep, MPI_Datatype etype, MPI_Datatype filetype) {
  MPI_File fh = open_fresh(name);
  EXPECT_OK(MPI_File_set_view(fh, 0, etype, filetype, datarep, MPI_INFO_NULL));
  return fh;
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

static int state;

static int file_extent(MPI_Datatype type, MPI_Aint* extent, void* extra) {
  int size;
  EXPECT(extra == &state);
  MPI_Type_size(type, &size);
  *extent = 2 * size;
  return MPI_SUCCESS;
}

static int bad_extent(MPI_Datatype type, MPI_Aint* extent, void* extra) {
  (void)type, (void)extent, (void)extra;
  return MPI_ERR_OTHER;
}

/* A representation that stores every byte twice. The program's buffers are contiguous. */
static int copy_out(void* buffer, MPI_Datatype type, MPI_Count count, void* file, MPI_Offset at) {
  int size;
  MPI_Type_size(type, &size);
  const char* from = (char*)buffer + at * size;
  for (MPI_Count i = 0; i < count * size; ++i)
    ((char*)file)[2 * i] = ((char*)file)[2 * i + 1] = from[i];
  return MPI_SUCCESS;
}

static int copy_in(void* buffer, MPI_Datatype type, MPI_Count count, void* file, MPI_Offset at) {
  int size;
  MPI_Type_size(type, &size);
  char* to = (char*)buffer + at * size;
  for (MPI_Count i = 0; i < count * size; ++i) {
    if (((char*)file)[2 * i] != ((char*)file)[2 * i + 1]) return MPI_ERR_OTHER;
    to[i] = ((char*)file)[2 * i];
  }
  return MPI_SUCCESS;
}

static int write_twice(void* buffer, MPI_Datatype type, int count, void* file, MPI_Offset at,
                       void* extra) {
  EXPECT(extra == &state);
  return copy_out(buffer, type, count, file, at);
}

static int read_twice(void* buffer, MPI_Datatype type, int count, void* file, MPI_Offset at,
                      void* extra) {
  EXPECT(extra == &state);
  return copy_in(buffer, type, count, file, at);
}

#if MPI_VERSION >= 4
static int write_twice_c(void* buffer, MPI_Datatype type, MPI_Count count, void* file,
                         MPI_Offset at, void* extra) {
  EXPECT(extra == &state);
  return copy_out(buffer, type, count, file, at);
}

static int read_twice_c(void* buffer, MPI_Datatype type, MPI_Count count, void* file, MPI_Offset at,
                        void* extra) {
  EXPECT(extra == &state);
  return copy_in(buffer, type, count, file, at);
}
#endif

/* the program's functions are called, with its state; broken data is a conversion error. */
static void own_representation(const char* datarep) {
  int values[4] = {1, 2, 3, here}, found[4] = {0};
  MPI_File fh = open_view(datarep, MPI_INT, MPI_INT);
  expect_extent(fh, MPI_INT, 8);
  EXPECT_OK(MPI_File_write_at_all(fh, 4 * here, values, 4, MPI_INT, &status));
  expect_items(&status, MPI_INT, 4);
  sync_barrier_sync(fh);
  EXPECT_EQ(file_size_of(fh), 32 * ranks);
  EXPECT_OK(MPI_File_read_at_all(fh, 4 * here, found, 4, MPI_INT, &status));
  expect_items(&status, MPI_INT, 4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(found[i], values[i]);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  EXPECT_OK(MPI_File_write_at(fh, 32 * here + 1, "\377", 1, MPI_BYTE, &status));
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, datarep, MPI_INFO_NULL));
  EXPECT_CLASS(MPI_File_read_at(fh, 4 * here, found, 4, MPI_INT, &status), MPI_ERR_CONVERSION);
  EXPECT_OK(MPI_File_close(&fh));
}

/* A name can be registered once and has a maximum length; an error of the extent fails set_view. */
static void registering(void) {
  char long_name[MPI_MAX_DATAREP_STRING + 10];
  memset(long_name, 'x', sizeof long_name - 1);
  long_name[sizeof long_name - 1] = '\0';
  EXPECT_OK(MPI_Register_datarep("twice", read_twice, write_twice, file_extent, &state));
  EXPECT_CLASS(MPI_Register_datarep("twice", read_twice, write_twice, file_extent, &state),
               MPI_ERR_DUP_DATAREP);
  EXPECT_CLASS(MPI_Register_datarep("external32", read_twice, write_twice, file_extent, &state),
               MPI_ERR_DUP_DATAREP);
  EXPECT(MPI_Register_datarep(long_name, read_twice, write_twice, file_extent, &state) !=
         MPI_SUCCESS);
  EXPECT_OK(MPI_Register_datarep("broken", read_twice, write_twice, bad_extent, NULL));
  MPI_File fh = open_view("native", MPI_BYTE, MPI_BYTE);
  const char* const refused[] = {long_name, "broken", "nobody's", "", "NATIVE"};
  for (int i = 0; i < 5; ++i)
    EXPECT(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, refused[i], MPI_INFO_NULL) != MPI_SUCCESS);
  EXPECT_OK(MPI_File_close(&fh));
  own_representation("twice");
#if MPI_VERSION >= 4
  EXPECT_OK(MPI_Register_datarep_c("twice_c", read_twice_c, write_twice_c, file_extent, &state));
  own_representation("twice_c");
#endif
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  registering();
  return end_test();
}
