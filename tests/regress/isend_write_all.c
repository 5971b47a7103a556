// RANKS: 2 4
// A rank asleep in a collective of Shima must not block messages of the MPI library.
//
// The first rank of each pair starts a nonblocking send of 64 MiB and calls write_all; the second
// receives before it calls write_all. The message only arrives if the sleeping rank lets the MPI
// make progress. In one round the receiver is also late, so that the sender sleeps in its longest
// intervals by then.
#include "mpi_check.h"

enum { message_bytes = 64 << 20, block_bytes = 64 << 10 };

static void send_and_write(MPI_File file, const void* block, unsigned char* message) {
  MPI_Request request;
  memset(message, here + 1, message_bytes);
  CHECK(MPI_Isend(message, message_bytes, MPI_BYTE, here + 1, 0, MPI_COMM_WORLD, &request));
  CHECK(MPI_File_write_at_all(file, (MPI_Offset)here * block_bytes, block, block_bytes, MPI_BYTE,
                              MPI_STATUS_IGNORE));
  CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void receive_and_write(MPI_File file, const void* block, unsigned char* message,
                              unsigned late_s) {
  sleep(late_s);
  CHECK(MPI_Recv(message, message_bytes, MPI_BYTE, here - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  REQUIRE(message[0] == here && message[message_bytes - 1] == here);
  CHECK(MPI_File_write_at_all(file, (MPI_Offset)here * block_bytes, block, block_bytes, MPI_BYTE,
                              MPI_STATUS_IGNORE));
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 60);
  unsigned char* message = calloc(1, message_bytes);
  static unsigned char block[block_bytes];
  memset(block, here + 1, sizeof block);
  MPI_File file;
  CHECK(MPI_File_open(MPI_COMM_WORLD, "isend.bin", MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL,
                      &file));
  for (unsigned late_s = 0; late_s < 2; ++late_s) {
    if (here % 2 == 0)
      send_and_write(file, block, message);
    else
      receive_and_write(file, block, message, late_s);
  }
  CHECK(MPI_File_close(&file));
  free(message);
  return end_test();
}
