/* Offsets and counts beyond 2 GiB. The file is sparse; the one transfer of more than 2 GiB uses one
 * small buffer that the memory type repeats in place, so it needs disk space but hardly any
 * memory.
 *
 * RANKS: 1 2
 * VARIANTS: striped
 * TIMEOUT: 300
 */
#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "expect.h"

static const char* name = "large_counts.out";

static MPI_File open_file(int extra) {
  MPI_File fh;
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | extra,
                          MPI_INFO_NULL, &fh));
  return fh;
}

static void expect_in_file(off_t place, long long expected) {
  long long found = 0;
  EXPECT_EQ(stored_read(name, &found, sizeof found, place), sizeof found);
  EXPECT_EQ(found, expected);
}

static void test_far_offsets(void) {
  for (int shift = 30; shift <= 42; shift++) {
    long long value = shift * 1000LL + here, back = 0;
    MPI_Offset place = ((MPI_Offset)1 << shift) - 4 + here * 8;
    MPI_File fh = open_file(MPI_MODE_DELETE_ON_CLOSE);
    EXPECT_OK(MPI_File_write_at(fh, place, &value, 1, MPI_LONG_LONG, MPI_STATUS_IGNORE));
    EXPECT_OK(MPI_File_read_at_all(fh, place, &back, 1, MPI_LONG_LONG, MPI_STATUS_IGNORE));
    EXPECT_EQ(back, value);
    EXPECT_OK(MPI_File_sync(fh));
    expect_in_file(place, value);
    EXPECT_OK(MPI_File_close(&fh));
  }
}

/* A view whose pieces are 3 GiB apart. */
static void test_wide_view(void) {
  const MPI_Aint gap = (MPI_Aint)3 << 30;
  long long values[4], back[4] = {0};
  MPI_Datatype pieces;
  MPI_Offset size, place;
  MPI_File fh = open_file(MPI_MODE_DELETE_ON_CLOSE);
  for (int i = 0; i < 4; i++) values[i] = here * 10 + i;
  MPI_Type_create_hvector(4, 1, gap, MPI_LONG_LONG, &pieces);
  MPI_Type_commit(&pieces);
  EXPECT_OK(MPI_File_set_view(fh, here * 8, MPI_LONG_LONG, pieces, "native", MPI_INFO_NULL));
  EXPECT_OK(MPI_File_get_byte_offset(fh, 3, &place));
  EXPECT_EQ(place, 3 * gap + here * 8);
  EXPECT_OK(MPI_File_write_all(fh, values, 4, MPI_LONG_LONG, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_read_at_all(fh, 0, back, 4, MPI_LONG_LONG, MPI_STATUS_IGNORE));
  for (int i = 0; i < 4; i++) EXPECT_EQ(back[i], values[i]);
  EXPECT_OK(MPI_File_sync(fh));
  EXPECT_OK(MPI_File_get_size(fh, &size));
  EXPECT_EQ(size, 3 * gap + ranks * 8);
  for (int i = 0; i < 4; i++) expect_in_file(i * gap + here * 8, values[i]);
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Type_free(&pieces);
}

static int room_for(double bytes) {
  struct statvfs fs;
  return statvfs(".", &fs) == 0 && (double)fs.f_bavail * (double)fs.f_frsize > 2 * bytes;
}

/* One call of more than 2 GiB by rank 0; the others take part without data. */
static void test_long_transfer(void) {
  enum { block = 1 << 20 };
  const long long blocks = 2051;
  const long long bytes = blocks * block;
  char* buffer;
  MPI_Datatype same_place;
  MPI_Status status;
  MPI_Count moved = 0;
  MPI_File fh;
  if (!room_for((double)bytes)) {
    if (here == 0)
      printf("no room for a file of %lld bytes: the long transfer is left out\n", bytes);
    return;
  }
  fh = open_file(MPI_MODE_DELETE_ON_CLOSE);
  buffer = malloc(block);
  memset(buffer, 'x', block);
  MPI_Type_create_hvector((int)blocks, block, 0, MPI_BYTE, &same_place);
  MPI_Type_commit(&same_place);
  EXPECT_OK(MPI_File_write_at_all(fh, 5, buffer, here == 0 ? 1 : 0, same_place, &status));
  MPI_Get_elements_x(&status, MPI_BYTE, &moved);
  EXPECT_EQ(moved, here == 0 ? bytes : 0);
#if MPI_VERSION >= 4
  if (here == 0) {
    MPI_Datatype again;
    MPI_Type_create_resized(MPI_BYTE, 0, 0, &again);
    MPI_Type_commit(&again);
    EXPECT_OK(MPI_File_read_at_c(fh, 5 + bytes - 3000, buffer, 3000, again, &status));
    MPI_Get_elements_x(&status, MPI_BYTE, &moved);
    EXPECT_EQ(moved, 3000);
    MPI_Type_free(&again);
  }
#endif
  EXPECT_OK(MPI_File_sync(fh));
  if (here == 0) {
    char ends[2] = {0};
    EXPECT_EQ(stored_size(name), 5 + bytes);
    EXPECT_EQ(stored_read(name, ends, 2, 4), 2);
    EXPECT(ends[0] == 0 && ends[1] == 'x');
    EXPECT_EQ(stored_read(name, ends, 1, 4 + bytes), 1);
    EXPECT(ends[0] == 'x');
  }
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Type_free(&same_place);
  free(buffer);
}

#if MPI_VERSION >= 4
static void test_large_calls(void) {
  MPI_File fh = open_file(MPI_MODE_DELETE_ON_CLOSE);
  MPI_Count extent = 0;
  MPI_Status status;
  MPI_Datatype huge;
  int value = here + 1, back = 0;
  EXPECT_OK(MPI_File_write_at_c(fh, here * 4, &value, 1, MPI_INT, &status));
  EXPECT_OK(MPI_File_sync(fh));
  EXPECT_OK(MPI_File_read_at_all_c(fh, here * 4, &back, 1, MPI_INT, &status));
  EXPECT_EQ(back, value);
  MPI_Type_contiguous_c((MPI_Count)5 << 30, MPI_BYTE, &huge);
  MPI_Type_commit(&huge);
  EXPECT_OK(MPI_File_get_type_extent_c(fh, huge, &extent));
  EXPECT_EQ(extent, (MPI_Count)5 << 30);
  /* reads end at the end of the file, for any requested count */
  EXPECT_OK(MPI_File_set_view(fh, 4 * (MPI_Offset)here, MPI_BYTE, huge, "native", MPI_INFO_NULL));
  EXPECT_OK(MPI_File_read_c(fh, &back, 4, MPI_BYTE, &status));
  EXPECT_EQ(back, value);
  MPI_Type_free(&huge);
  EXPECT_OK(MPI_File_close(&fh));
}
#endif

int main(int argc, char** argv) {
  start_test(&argc, &argv, 280);
  test_far_offsets();
  test_wide_view();
#if MPI_VERSION >= 4
  test_large_calls();
#endif
  test_long_transfer();
  return end_test();
}
