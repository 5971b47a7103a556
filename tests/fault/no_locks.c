/* A file system without locks (NFS without its lock service, many FUSE ones): everything works
 * except atomic mode, which is an error on every rank and writes no byte.
 *
 * RANKS: 1 3
 * ENV: SHIMA_LOG=error SHIMA_FAULT=lock:ENOLCK
 */
#include "mpi/expect.h"

enum { bytes = 1000 };

static MPI_File fh;

static void expect_size(MPI_Offset expected) {
  MPI_Offset size = -1;
  EXPECT_OK(MPI_File_sync(fh));
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_OK(MPI_File_get_size(fh, &size));
  EXPECT_EQ(size, expected);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  char data[bytes];
  MPI_Request request;
  start_test(&argc, &argv, 100);
  memset(data, 'x', sizeof data);
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "no_locks.out",
                          MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                          &fh));
  EXPECT_OK(MPI_File_set_atomicity(fh, 1));
  EXPECT_CLASS(MPI_File_write_at_all(fh, bytes * here, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE),
               MPI_ERR_IO);
  EXPECT_CLASS(MPI_File_write_at(fh, bytes * here, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE),
               MPI_ERR_IO);
  EXPECT_OK(MPI_File_iwrite_at(fh, bytes * here, data, bytes, MPI_BYTE, &request));
  EXPECT_CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_IO);
  expect_size(0);

  EXPECT_OK(MPI_File_set_atomicity(fh, 0));
  EXPECT_OK(MPI_File_write_at_all(fh, bytes * here, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  expect_size((MPI_Offset)bytes * ranks);
  EXPECT_OK(MPI_File_seek_shared(fh, (MPI_Offset)bytes * ranks, MPI_SEEK_SET));
  EXPECT_OK(MPI_File_write_ordered(fh, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  expect_size((MPI_Offset)2 * bytes * ranks);
  EXPECT_OK(MPI_File_write_shared(fh, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  expect_size((MPI_Offset)3 * bytes * ranks);
  EXPECT_OK(MPI_File_close(&fh));
  return end_test();
}
