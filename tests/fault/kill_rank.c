// RANKS: none
// (compiled by kill_rank.py) Writes and reads the same file together for ever; rank 1 is killed by
// itself: as the first argument says, "before" a call that the others go into, or "during" one, by
// a thread that sleeps first; the second one says by which calls: blocking, nonblocking, split. A
// rank that lives on and gets an error from a call leaves a file "told.RANK".
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "mpi_check.h"

enum { piece_bytes = 8192, piece_count = 256, bytes = piece_bytes * piece_count, calls_before = 5 };

static void* killer(void* ignored) {
  nanosleep(&(struct timespec){0, 150000000}, NULL);
  raise(SIGKILL);
  return ignored;
}

static MPI_File open_with_view(void) {
  MPI_File file;
  MPI_Datatype pieces;
  CHECK(MPI_File_open(MPI_COMM_WORLD, "data.bin", MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL,
                      &file));
  MPI_Type_vector(piece_count, piece_bytes, ranks * piece_bytes, MPI_BYTE, &pieces);
  MPI_Type_commit(&pieces);
  CHECK(MPI_File_set_view(file, (MPI_Offset)here * piece_bytes, MPI_BYTE, pieces, "native",
                          MPI_INFO_NULL));
  MPI_Type_free(&pieces);
  return file;
}

static unsigned char data[bytes];

static int transfer(MPI_File file, const char* way, int write) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (strcmp(way, "nonblocking") == 0) {
    const int code = write ? MPI_File_iwrite_at_all(file, 0, data, bytes, MPI_BYTE, &request)
                           : MPI_File_iread_at_all(file, 0, data, bytes, MPI_BYTE, &request);
    return code != MPI_SUCCESS ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (strcmp(way, "split") == 0) {
    const int code = write ? MPI_File_write_at_all_begin(file, 0, data, bytes, MPI_BYTE)
                           : MPI_File_read_at_all_begin(file, 0, data, bytes, MPI_BYTE);
    if (code != MPI_SUCCESS) return code;
    return write ? MPI_File_write_at_all_end(file, data, MPI_STATUS_IGNORE)
                 : MPI_File_read_at_all_end(file, data, MPI_STATUS_IGNORE);
  }
  return write ? MPI_File_write_at_all(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE)
               : MPI_File_read_at_all(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  pthread_t thread;
  start_test(&argc, &argv, 40);
  // The launcher of MPICH tells the others so, or goes and leaves their output without a reader.
  signal(SIGUSR1, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  const int during = argc > 1 && strcmp(argv[1], "during") == 0;
  const char* way = argc > 2 ? argv[2] : "blocking";
  MPI_File file = open_with_view();
  if (here == 1 && during) pthread_create(&thread, NULL, killer, NULL);
  for (int call = 0;; ++call) {
    if (here == 1 && !during && call == calls_before) raise(SIGKILL);
    const int wrote = transfer(file, way, 1);
    const int read = transfer(file, way, 0);
    if (wrote == MPI_SUCCESS && read == MPI_SUCCESS) continue;
    char told[32];
    snprintf(told, sizeof told, "told.%d", here);
    REQUIRE(close(open(told, O_CREAT | O_WRONLY, 0644)) == 0);
    _exit(3);
  }
}
