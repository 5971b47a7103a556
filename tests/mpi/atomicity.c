/* Atomic mode: ranks that write and read the same strided bytes at once never see a mixture, by
 * independent or collective calls; the mode must be the same on all ranks.
 *
 * RANKS: 2 4
 * VARIANTS: striped
 * ENV: SHIMA_LOG=error
 */
#include "expect.h"

enum { blocks = 64, block_ints = 256, rounds = 20 };

static void expect_one_writer(const int* values) {
  for (int i = 1; i < blocks * block_ints; ++i) EXPECT_EQ(values[i], values[0]);
}

int main(int argc, char** argv) {
  static int mine[blocks * block_ints], seen[blocks * block_ints];
  MPI_File fh;
  MPI_Datatype type;
  int flag = -1;
  start_test(&argc, &argv, 100);
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "atomic.out",
                          MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                          &fh));
  EXPECT_OK(MPI_File_get_atomicity(fh, &flag));
  EXPECT_EQ(flag, 0);
  if (ranks > 1) EXPECT_CLASS(MPI_File_set_atomicity(fh, here == 0), MPI_ERR_NOT_SAME);
  EXPECT_OK(MPI_File_set_atomicity(fh, 1));
  EXPECT_OK(MPI_File_get_atomicity(fh, &flag));
  EXPECT_EQ(flag, 1);
  MPI_Type_vector(blocks, block_ints, 2 * block_ints, MPI_INT, &type);
  MPI_Type_commit(&type);
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_INT, type, "native", MPI_INFO_NULL));
  MPI_Type_free(&type);
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < blocks * block_ints; ++i) mine[i] = round * ranks + here + 1;
    if (round % 2) {
      EXPECT_OK(
          MPI_File_write_at_all(fh, 0, mine, blocks * block_ints, MPI_INT, MPI_STATUS_IGNORE));
    } else {
      EXPECT_OK(MPI_File_write_at(fh, 0, mine, blocks * block_ints, MPI_INT, MPI_STATUS_IGNORE));
    }
    EXPECT_OK(MPI_File_read_at(fh, 0, seen, blocks * block_ints, MPI_INT, MPI_STATUS_IGNORE));
    expect_one_writer(seen);
  }
  EXPECT_OK(MPI_File_close(&fh));
  return end_test();
}
