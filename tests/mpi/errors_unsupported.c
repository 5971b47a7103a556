/* What is not there yet says so, and reaches neither the file nor the MPI's own file layer.
 *
 * RANKS: 2
 * ENV: SHIMA_LOG=error
 */
#include <unistd.h>

#include "expect.h"

#define EXPECT_UNSUPPORTED(call) EXPECT_CLASS(call, MPI_ERR_UNSUPPORTED_OPERATION)

int main(int argc, char** argv) {
  MPI_File fh;
  MPI_Request request;
  MPI_Offset position, size;
  int value = 1;
  start_test(&argc, &argv, 100);
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "unsupported.out",
                          MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                          &fh));
  EXPECT_UNSUPPORTED(MPI_File_iwrite(fh, &value, 1, MPI_INT, &request));
  EXPECT(request == MPI_REQUEST_NULL);
  EXPECT_UNSUPPORTED(MPI_File_iread_at_all(fh, 0, &value, 1, MPI_INT, &request));
  EXPECT_UNSUPPORTED(MPI_File_write_shared(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_UNSUPPORTED(MPI_File_read_ordered(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_UNSUPPORTED(MPI_File_write_all_begin(fh, &value, 1, MPI_INT));
  EXPECT_UNSUPPORTED(MPI_File_write_all_end(fh, &value, MPI_STATUS_IGNORE));
  EXPECT_UNSUPPORTED(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET));
  EXPECT_UNSUPPORTED(MPI_File_get_position_shared(fh, &position));
  EXPECT_UNSUPPORTED(MPI_File_set_atomicity(fh, 1));
  EXPECT_OK(MPI_File_get_size(fh, &size));
  EXPECT_EQ(size, 0);
  EXPECT_OK(MPI_File_close(&fh));
  return end_test();
}
