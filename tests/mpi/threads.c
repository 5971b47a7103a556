/* MPI_THREAD_MULTIPLE: several threads of each rank on one file (independent and nonblocking calls,
 * the shared pointer) and on separate files (collective calls on one communicator per
 * thread).
 *
 * RANKS: 1 3
 * VARIANTS: striped
 * LIBS: -lpthread
 * ENV: SHIMA_LOG=error
 */
#include <pthread.h>
#include <stdint.h>

#include "expect.h"

enum { threads = 4, rounds = 30, bytes = 700 };

static MPI_File shared_file;
static MPI_Comm comms[threads];

static void fill(unsigned char* to, int owner, int thread, int round) {
  for (int i = 0; i < bytes; ++i)
    to[i] = (unsigned char)(owner * 61 + thread * 17 + round + i % 97);
}

static void on_the_shared_file(int thread) {
  unsigned char mine[bytes], found[bytes];
  for (int round = 0; round < rounds; ++round) {
    const MPI_Offset place = (((MPI_Offset)round * threads + thread) * ranks + here) * bytes;
    MPI_Request request;
    fill(mine, here, thread, round);
    if (round % 2 == 0) {
      EXPECT_OK(MPI_File_write_at(shared_file, place, mine, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    } else {
      EXPECT_OK(MPI_File_iwrite_at(shared_file, place, mine, bytes, MPI_BYTE, &request));
      EXPECT_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    EXPECT_OK(MPI_File_read_at(shared_file, place, found, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    EXPECT(memcmp(mine, found, bytes) == 0);
  }
}

static void on_a_file_of_its_own(int thread) {
  unsigned char mine[bytes], found[bytes];
  char name[40];
  MPI_File fh;
  MPI_Datatype pieces;
  const int other = (here + 1) % ranks;
  snprintf(name, sizeof name, "threads.%d.out", thread);
  MPI_Type_vector(bytes / 10, 10, 10 * ranks, MPI_BYTE, &pieces);
  MPI_Type_commit(&pieces);
  for (int round = 0; round < rounds; ++round) {
    fill(mine, here, thread, round);
    EXPECT_OK(
        MPI_File_open(comms[thread], name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh));
    EXPECT_OK(MPI_File_set_view(fh, 10 * here, MPI_BYTE, pieces, "native", MPI_INFO_NULL));
    EXPECT_OK(MPI_File_write_all(fh, mine, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    EXPECT_OK(MPI_File_set_view(fh, 10 * other, MPI_BYTE, pieces, "native", MPI_INFO_NULL));
    EXPECT_OK(MPI_File_read_all(fh, found, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    fill(mine, other, thread, round);
    EXPECT(memcmp(mine, found, bytes) == 0);
    EXPECT_OK(MPI_File_close(&fh));
  }
  MPI_Type_free(&pieces);
}

static void* work(void* number) {
  const int thread = (int)(intptr_t)number;
  on_the_shared_file(thread);
  on_a_file_of_its_own(thread);
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  pthread_t started[threads];
  alarm(100);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  EXPECT_EQ(provided, MPI_THREAD_MULTIPLE);
  MPI_Comm_rank(MPI_COMM_WORLD, &here);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < threads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "threads.out",
                          MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                          &shared_file));
  for (int i = 0; i < threads; ++i) pthread_create(&started[i], NULL, work, (void*)(intptr_t)i);
  for (int i = 0; i < threads; ++i) pthread_join(started[i], NULL);
  EXPECT_OK(MPI_File_close(&shared_file));
  for (int i = 0; i < threads; ++i) MPI_Comm_free(&comms[i]);
  return end_test();
}
