/* The shared pointer: records of different lengths that neither overlap nor leave gaps, ordered
 * access in rank order, seeking, and a reset by every set_view.
 *
 * RANKS: 1 2 4 7
 * VARIANTS: striped
 * ENV: SHIMA_LOG=error
 */
#include "expect.h"

enum { records = 100, longest = 20 };

static MPI_File open_file(int extra) {
  MPI_File fh;
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "shared.out", MPI_MODE_CREATE | MPI_MODE_RDWR | extra,
                          MPI_INFO_NULL, &fh));
  return fh;
}

/* A record: its length, its writer, then numbers derived from both. */
static int fill(int* record, int n) {
  int length = 2 + (here * 7 + n * 3) % (longest - 2);
  record[0] = length, record[1] = here;
  for (int i = 2; i < length; ++i) record[i] = here * 31 + length + i;
  return length;
}

static int check_record(const int* record, int* seen) {
  int length = record[0], rank = record[1];
  EXPECT(length >= 2 && length <= longest && rank >= 0 && rank < ranks);
  for (int i = 2; i < length; ++i) EXPECT_EQ(record[i], rank * 31 + length + i);
  ++seen[rank];
  return length;
}

static void test_records(void) {
  int record[longest], seen[16] = {0};
  MPI_Offset end, size, at = 0;
  MPI_File fh = open_file(0);
  MPI_Request request;
  EXPECT_OK(MPI_File_set_size(fh, 0));
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  for (int n = 0; n < records; ++n) {
    int length = fill(record, n);
    if (n % 2) {
      EXPECT_OK(MPI_File_write_shared(fh, record, length, MPI_INT, MPI_STATUS_IGNORE));
    } else {
      EXPECT_OK(MPI_File_iwrite_shared(fh, record, length, MPI_INT, &request));
      EXPECT_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_OK(MPI_File_get_position_shared(fh, &end));
  EXPECT_OK(MPI_File_get_size(fh, &size));
  EXPECT_EQ(size, end * (int)sizeof(int));
  while (at < end) {
    EXPECT_OK(MPI_File_read_at(fh, at, record, longest, MPI_INT, MPI_STATUS_IGNORE));
    at += check_record(record, seen);
  }
  EXPECT_EQ(at, end);
  for (int r = 0; r < ranks; ++r) EXPECT_EQ(seen[r], records);
  EXPECT_OK(MPI_File_close(&fh));
}

static void test_ordered_and_seek(void) {
  int mine[8], value = -1;
  MPI_Offset position;
  MPI_File fh = open_file(MPI_MODE_DELETE_ON_CLOSE);
  for (int i = 0; i < 8; ++i) mine[i] = here * 100 + i;
  EXPECT_OK(MPI_File_set_size(fh, 0));
  EXPECT_OK(MPI_File_set_view(fh, 40, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  for (int round = 0; round < 3; ++round)
    EXPECT_OK(MPI_File_write_ordered(fh, mine, here % 8, MPI_INT, MPI_STATUS_IGNORE));
  int all = 0;
  for (int r = 0; r < ranks; ++r) all += r % 8;
  EXPECT_OK(MPI_File_get_position_shared(fh, &position));
  EXPECT_EQ(position, 3 * all);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_OK(MPI_File_seek_shared(fh, all, MPI_SEEK_SET));
  for (int i = 0; i < 8; ++i) mine[i] = -1;
  EXPECT_OK(MPI_File_read_ordered(fh, mine, here % 8, MPI_INT, MPI_STATUS_IGNORE));
  for (int i = 0; i < here % 8; ++i) EXPECT_EQ(mine[i], here * 100 + i);
  EXPECT_OK(MPI_File_seek_shared(fh, -all, MPI_SEEK_CUR));
  EXPECT_OK(MPI_File_get_position_shared(fh, &position));
  EXPECT_EQ(position, all);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_OK(MPI_File_seek_shared(fh, 0, MPI_SEEK_END));
  EXPECT_OK(MPI_File_get_position_shared(fh, &position));
  EXPECT_EQ(position, 3 * all);
  EXPECT_CLASS(MPI_File_seek_shared(fh, -1, MPI_SEEK_SET), MPI_ERR_ARG);
  if (ranks > 1) EXPECT_CLASS(MPI_File_seek_shared(fh, here, MPI_SEEK_SET), MPI_ERR_NOT_SAME);

  /* The individual pointer has not moved; set_view resets the shared one. */
  EXPECT_OK(MPI_File_get_position(fh, &position));
  EXPECT_EQ(position, 0);
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  EXPECT_OK(MPI_File_get_position_shared(fh, &position));
  EXPECT_EQ(position, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_OK(MPI_File_read_shared(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_close(&fh));
}

static void test_append_and_sequential(void) {
  int value = here;
  MPI_Offset position, size;
  MPI_File fh = open_file(0);
  EXPECT_OK(MPI_File_set_size(fh, 12));
  EXPECT_OK(MPI_File_close(&fh));
  fh = open_file(MPI_MODE_APPEND);
  EXPECT_OK(MPI_File_get_position_shared(fh, &position));
  EXPECT_EQ(position, 12);
  EXPECT_OK(MPI_File_close(&fh));
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "shared.out",
                          MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE,
                          MPI_INFO_NULL, &fh));
  EXPECT_OK(MPI_File_write_ordered(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_write_shared(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_CLASS(MPI_File_write(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE),
               MPI_ERR_UNSUPPORTED_OPERATION);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_OK(MPI_File_get_size(fh, &size));
  EXPECT_EQ(size, ranks * 8 > 12 ? ranks * 8 : 12);
  EXPECT_OK(MPI_File_close(&fh));
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  test_records();
  test_ordered_and_seek();
  test_append_and_sequential();
  return end_test();
}
