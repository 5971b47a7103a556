/* A file request that fails is reported once, by the call that completes it, also where another
 * request is pending for a long time: MPICH asks again and again for the status of what is
 * complete.
 *
 * RANKS: 2
 */
#include <signal.h>
#include <sys/resource.h>

#include "mpi/expect.h"

enum { block_bytes = 4096, size_limit = 1 << 20 };

static int handler_calls;
static void count_call(MPI_File* fh, int* error, ...) {
  (void)fh;
  (void)error;
  ++handler_calls;
}

static MPI_File open_with_handler(void) {
  MPI_File fh;
  MPI_Errhandler handler;
  EXPECT_OK(MPI_File_open(MPI_COMM_SELF, here == 0 ? "waits.0" : "waits.1",
                          MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh));
  MPI_File_create_errhandler(count_call, &handler);
  MPI_File_set_errhandler(fh, handler);
  MPI_Errhandler_free(&handler);
  return fh;
}

static MPI_Request start_failing_write(MPI_File fh) {
  static char block[block_bytes];
  MPI_Request request;
  handler_calls = 0;
  EXPECT_OK(MPI_File_iwrite_at(fh, size_limit, block, block_bytes, MPI_BYTE, &request));
  return request;
}

static void test_while_a_message_is_late(MPI_File fh) {
  int value = 0, flag = 1;
  MPI_Status statuses[2];
  MPI_Request requests[2] = {start_failing_write(fh), MPI_REQUEST_NULL};
  EXPECT_OK(MPI_Irecv(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &requests[1]));
  usleep(100000);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(MPI_Testall(2, requests, &flag, statuses), MPI_SUCCESS);
    EXPECT_EQ(flag, 0);
  }
  EXPECT_EQ(handler_calls, 0);
  MPI_Barrier(MPI_COMM_WORLD);  // rank 1 sends after it
  EXPECT_EQ(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
  EXPECT_EQ(handler_calls, 1);
  EXPECT(statuses[0].MPI_ERROR != MPI_SUCCESS);
  EXPECT_EQ(statuses[1].MPI_ERROR, MPI_SUCCESS);
  EXPECT_EQ(value, 42);
}

static void wait_while_a_message_is_late(MPI_File fh) {
  int value = 0;
  MPI_Request requests[2] = {start_failing_write(fh), MPI_REQUEST_NULL};
  EXPECT_OK(MPI_Irecv(&value, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, &requests[1]));
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS);
  EXPECT_EQ(handler_calls, 1);
  EXPECT_EQ(value, 42);
}

static void send_late(void) {
  const int value = 42;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  usleep(500000);
  MPI_Send(&value, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 60);
  signal(SIGXFSZ, SIG_IGN);
  MPI_File fh = open_with_handler();
  const struct rlimit limit = {size_limit, size_limit};
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  if (here == 0) {
    test_while_a_message_is_late(fh);
    wait_while_a_message_is_late(fh);
  } else {
    send_late();
  }
  EXPECT_OK(MPI_File_close(&fh));
  return end_test();
}
