/* MPI_Waitall of an MPI request and a file request completes both, whichever is last, and returns
 * the status of each; so does a call without file requests while such requests exist.
 *
 * RANKS: 2
 */
#include "mpi/expect.h"

enum { block_bytes = 1 << 20, message_bytes = 4 << 20 };

static unsigned char block[block_bytes], message[2][message_bytes];

// Rank 1 sends so late that the message is last; rank 0 completes both in one call.
static void wait_for_both(MPI_File fh, unsigned late_us) {
  MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status statuses[3];
  const int other = 1 - here;
  if (here == 1) usleep(late_us);
  memset(message[0], here + 1, message_bytes);
  EXPECT_OK(MPI_Irecv(message[1], message_bytes, MPI_BYTE, other, 5, MPI_COMM_WORLD, &requests[0]));
  EXPECT_OK(MPI_File_iwrite_at_all(fh, (MPI_Offset)here * block_bytes, block, block_bytes, MPI_BYTE,
                                   &requests[1]));
  EXPECT_OK(MPI_Isend(message[0], message_bytes, MPI_BYTE, other, 5, MPI_COMM_WORLD, &requests[2]));
  EXPECT_OK(MPI_Waitall(3, requests, statuses));
  for (int i = 0; i < 3; ++i) EXPECT(requests[i] == MPI_REQUEST_NULL);
  EXPECT_EQ(statuses[0].MPI_SOURCE, other);
  expect_items(&statuses[0], MPI_BYTE, message_bytes);
  expect_items(&statuses[1], MPI_BYTE, block_bytes);
  EXPECT_EQ(message[1][message_bytes - 1], other + 1);
}

static void wait_for_messages_only(MPI_File fh) {
  MPI_Request write, messages[2];
  const int other = 1 - here;
  EXPECT_OK(
      MPI_File_iwrite_at(fh, (MPI_Offset)here * block_bytes, block, block_bytes, MPI_BYTE, &write));
  EXPECT_OK(MPI_Irecv(message[1], message_bytes, MPI_BYTE, other, 6, MPI_COMM_WORLD, &messages[0]));
  EXPECT_OK(MPI_Isend(message[0], message_bytes, MPI_BYTE, other, 6, MPI_COMM_WORLD, &messages[1]));
  EXPECT_OK(MPI_Waitall(2, messages, MPI_STATUSES_IGNORE));
  EXPECT(messages[0] == MPI_REQUEST_NULL && messages[1] == MPI_REQUEST_NULL);
  EXPECT_OK(MPI_Wait(&write, MPI_STATUS_IGNORE));
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 60);
  memset(block, here + 1, block_bytes);
  MPI_File fh = open_fresh("mixed.out");
  wait_for_both(fh, 0);
  wait_for_both(fh, 300000);
  wait_for_messages_only(fh);
  EXPECT_OK(MPI_File_close(&fh));
  return end_test();
}
