/* Open, write, read, size, sync, close, delete; the contents are checked with POSIX calls.
 *
 * RANKS: 1 2 4 7
 * VARIANTS: striped
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "expect.h"

enum { ints = 1000 };

static int value(int r, int i) { return r * 1000000 + i + 1; }

static void fill(int* values) {
  for (int i = 0; i < ints; i++) values[i] = value(here, i);
}

static void expect_count(MPI_Status* status, int expected) {
  int count = -1;
  MPI_Get_count(status, MPI_INT, &count);
  EXPECT_EQ(count, expected);
}

static void expect_file(const char* name) {
  int values[ints];
  for (int r = 0; r < ranks; r++) {
    EXPECT_EQ(stored_read(name, values, sizeof values, (long long)r * (long long)sizeof values),
              sizeof values);
    for (int i = 0; i < ints; i++) EXPECT_EQ(values[i], value(r, i));
  }
}

/* Each of the ways to write the same blocks, and to read the neighbour's. */
static void write_and_read(MPI_File fh, int way) {
  int mine[ints], theirs[ints];
  int neighbour = (here + 1) % ranks;
  MPI_Offset at = (MPI_Offset)here * (MPI_Offset)sizeof mine;
  MPI_Offset from = (MPI_Offset)neighbour * (MPI_Offset)sizeof mine;
  MPI_Status status;
  fill(mine);
  memset(theirs, 0, sizeof theirs);
  EXPECT_OK(MPI_File_seek(fh, at, MPI_SEEK_SET));
  switch (way) {
    case 0:
      EXPECT_OK(MPI_File_write(fh, mine, ints, MPI_INT, &status));
      break;
    case 1:
      EXPECT_OK(MPI_File_write_all(fh, mine, ints, MPI_INT, &status));
      break;
    case 2:
      EXPECT_OK(MPI_File_write_at(fh, at, mine, ints, MPI_INT, &status));
      break;
    default:
      EXPECT_OK(MPI_File_write_at_all(fh, at, mine, ints, MPI_INT, &status));
  }
  expect_count(&status, ints);
  EXPECT_OK(MPI_File_sync(fh));
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_OK(MPI_File_sync(fh));
  EXPECT_OK(MPI_File_seek(fh, from, MPI_SEEK_SET));
  switch (way) {
    case 0:
      EXPECT_OK(MPI_File_read(fh, theirs, ints, MPI_INT, &status));
      break;
    case 1:
      EXPECT_OK(MPI_File_read_all(fh, theirs, ints, MPI_INT, &status));
      break;
    case 2:
      EXPECT_OK(MPI_File_read_at(fh, from, theirs, ints, MPI_INT, &status));
      break;
    default:
      EXPECT_OK(MPI_File_read_at_all(fh, from, theirs, ints, MPI_INT, &status));
  }
  expect_count(&status, ints);
  for (int i = 0; i < ints; i++) EXPECT_EQ(theirs[i], value(neighbour, i));
}

static void test_ways(const char* name) {
  for (int way = 0; way < 4; way++) {
    MPI_File fh;
    EXPECT_OK(
        MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh));
    write_and_read(fh, way);
    EXPECT_OK(MPI_File_close(&fh));
    EXPECT(fh == MPI_FILE_NULL);
    expect_file(name);
    MPI_Barrier(MPI_COMM_WORLD);
    if (here == 0) EXPECT_OK(MPI_File_delete(name, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT(access(name, F_OK) != 0);
  }
}

static void test_sizes(const char* name) {
  MPI_File fh;
  MPI_Offset size = -1;
  int atomic = 1, amode = 0, same = MPI_UNEQUAL;
  MPI_Group group, world;
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, name,
                          MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                          &fh));
  EXPECT_OK(MPI_File_set_size(fh, 12345));
  EXPECT_OK(MPI_File_get_size(fh, &size));
  EXPECT_EQ(size, 12345);
  EXPECT_OK(MPI_File_preallocate(fh, 100000));
  EXPECT_OK(MPI_File_get_size(fh, &size));
  EXPECT_EQ(size, 100000);
  EXPECT_OK(MPI_File_preallocate(fh, 10)); /* never shortens */
  EXPECT_OK(MPI_File_get_size(fh, &size));
  EXPECT_EQ(size, 100000);
  EXPECT_OK(MPI_File_set_size(fh, 7));
  EXPECT_OK(MPI_File_get_size(fh, &size));
  EXPECT_EQ(size, 7);
  EXPECT_OK(MPI_File_get_amode(fh, &amode));
  EXPECT_EQ(amode, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  EXPECT_OK(MPI_File_get_group(fh, &group));
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_compare(group, world, &same);
  EXPECT_EQ(same, MPI_IDENT);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  EXPECT_OK(MPI_File_get_atomicity(fh, &atomic));
  EXPECT_EQ(atomic, 0);
  EXPECT_OK(MPI_File_set_atomicity(fh, 0));
  EXPECT_OK(MPI_File_close(&fh));
  EXPECT(access(name, F_OK) != 0);
}

/* Reads stop at the end of the file, and return the count. */
static void test_short_reads(const char* name) {
  MPI_File fh;
  MPI_Status status;
  int values[10] = {0}, count = 0;
  char bytes[10] = "123456789";
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, name,
                          MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                          &fh));
  EXPECT_OK(MPI_File_write_at_all(fh, 0, bytes, here == 0 ? 10 : 0, MPI_BYTE, &status));
  EXPECT_OK(MPI_File_sync(fh));
  for (int together = 0; together < 2; together++) {
    if (together) {
      EXPECT_OK(MPI_File_read_at_all(fh, 0, values, 10, MPI_INT, &status));
    } else {
      EXPECT_OK(MPI_File_read_at(fh, 0, values, 10, MPI_INT, &status));
    }
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT_EQ(count, MPI_UNDEFINED); /* two and a half ints */
    MPI_Get_elements(&status, MPI_BYTE, &count);
    EXPECT_EQ(count, 10);
    if (together) {
      EXPECT_OK(MPI_File_read_at_all(fh, 1000, values, 10, MPI_INT, &status));
    } else {
      EXPECT_OK(MPI_File_read_at(fh, 1000, values, 10, MPI_INT, &status));
    }
    expect_count(&status, 0);
  }
  EXPECT_OK(MPI_File_write_at_all(fh, 0, NULL, 0, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_close(&fh));
}

static void test_append(const char* name) {
  MPI_File fh;
  MPI_Offset position = -1;
  EXPECT_OK(
      MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &fh));
  EXPECT_OK(MPI_File_set_size(fh, 77));
  EXPECT_OK(MPI_File_close(&fh));
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, name,
                          MPI_MODE_APPEND | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                          &fh));
  EXPECT_OK(MPI_File_get_position(fh, &position));
  EXPECT_EQ(position, 77);
  EXPECT_OK(MPI_File_close(&fh));
}

static void test_prefix_and_absolute_buffer(void) {
  MPI_File fh;
  MPI_Datatype absolute;
  MPI_Aint address;
  static int source = 4711, target;
  int one = 1;
  EXPECT_OK(MPI_File_open(MPI_COMM_SELF, here == 0 ? "ufs:pre:fix" : "plain:name",
                          MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh));
  EXPECT(access(here == 0 ? "pre:fix" : "plain:name", F_OK) == 0);
  MPI_Get_address(&source, &address);
  MPI_Type_create_hindexed(1, &one, &address, MPI_INT, &absolute);
  MPI_Type_commit(&absolute);
  EXPECT_OK(MPI_File_write_at(fh, 8, MPI_BOTTOM, 1, absolute, MPI_STATUS_IGNORE));
  MPI_Type_free(&absolute);
  EXPECT_OK(MPI_File_read_at(fh, 8, &target, 1, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_EQ(target, 4711);
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Barrier(MPI_COMM_WORLD);
  if (here == 0) unlink("pre:fix");
  if (here == 1) unlink("plain:name");
}

#ifdef MPI_ABI /* leaves c2f and f2c to Fortran's library */
#define MPI_File_c2f MPI_File_toint
#define MPI_File_f2c MPI_File_fromint
#endif

static void test_handles_as_integers(const char* name) {
  MPI_File first, second;
  EXPECT_EQ(MPI_File_c2f(MPI_FILE_NULL), 0);
  EXPECT(MPI_File_f2c(0) == MPI_FILE_NULL);
  EXPECT(MPI_File_f2c(12345) == MPI_FILE_NULL);
  EXPECT_OK(
      MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &first));
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                          MPI_INFO_NULL, &second));
  EXPECT(MPI_File_c2f(first) != MPI_File_c2f(second));
  EXPECT(MPI_File_f2c(MPI_File_c2f(first)) == first);
  EXPECT(MPI_File_f2c(MPI_File_c2f(second)) == second);
  EXPECT_OK(MPI_File_close(&second));
  EXPECT_OK(MPI_File_close(&first));
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  test_ways("basic.out");
  test_sizes("basic.out");
  test_short_reads("basic.out");
  test_append("basic.out");
  test_prefix_and_absolute_buffer();
  test_handles_as_integers("basic.out");
  return end_test();
}
