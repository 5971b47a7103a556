/* Split collective calls: the right bytes, one at a time, ends that match their begins.
 *
 * RANKS: 1 2 4 7
 * VARIANTS: striped
 * ENV: SHIMA_LOG=error
 */
#include "expect.h"

enum { ints = 1000 };

int main(int argc, char** argv) {
  static int out[ints], in[ints];
  MPI_File fh;
  MPI_Status status;
  int count;
  start_test(&argc, &argv, 100);
  for (int i = 0; i < ints; ++i) out[i] = here * ints + i;
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "split.out",
                          MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                          &fh));
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));

  EXPECT_OK(MPI_File_write_at_all_begin(fh, (MPI_Offset)here * ints, out, ints, MPI_INT));
  EXPECT_CLASS(MPI_File_write_all_begin(fh, out, ints, MPI_INT), MPI_ERR_ARG);
  EXPECT_CLASS(MPI_File_write_all(fh, out, ints, MPI_INT, &status), MPI_ERR_ARG);
  EXPECT_CLASS(MPI_File_read_at_all_end(fh, in, &status), MPI_ERR_ARG);
  EXPECT_OK(MPI_File_write_at_all_end(fh, out, &status));
  MPI_Get_count(&status, MPI_INT, &count);
  EXPECT_EQ(count, ints);
  EXPECT_CLASS(MPI_File_write_at_all_end(fh, out, &status), MPI_ERR_ARG);

  EXPECT_OK(MPI_File_seek(fh, (MPI_Offset)((here + 1) % ranks) * ints, MPI_SEEK_SET));
  EXPECT_OK(MPI_File_read_all_begin(fh, in, ints, MPI_INT));
  EXPECT_OK(MPI_File_read_all_end(fh, in, &status));
  for (int i = 0; i < ints; ++i) EXPECT_EQ(in[i], (here + 1) % ranks * ints + i);

  EXPECT_OK(MPI_File_read_ordered_begin(fh, in, ints, MPI_INT));
  EXPECT_OK(MPI_File_read_ordered_end(fh, in, &status));
  for (int i = 0; i < ints; ++i) EXPECT_EQ(in[i], here * ints + i);
  EXPECT_OK(MPI_File_close(&fh));
  return end_test();
}
