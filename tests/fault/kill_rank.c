// RANKS: none
// (compiled by kill_rank.py) Repeats the same calls; one rank is killed at the moment named by the
// first argument: "before" (rank 1 kills itself before a call that the others enter), "during" (a
// thread kills it after a delay), or "in" (SHIMA_FAULT kills it in a phase of a call). The second
// argument names the calls. A surviving rank that gets an error from one of them creates a file
// "told.RANK" with 1 if its class is that of lost ranks.
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "mpi_check.h"

enum { piece_bytes = 8192, piece_count = 256, bytes = piece_bytes * piece_count, calls_before = 5 };

static unsigned char data[bytes];
static MPI_File file = MPI_FILE_NULL;
static int shares_a_node = 1;
static int stays_until_all_told;

static void* killer(void* ignored) {
  nanosleep(&(struct timespec){0, 150000000}, NULL);
  raise(SIGKILL);
  return ignored;
}

// How many ranks have ended, by the lines that their shields add to a file.
static int ended_ranks(void) {
  char ends[4096];
  int count = 0;
  const int fd = open("ended", O_RDONLY);
  if (fd < 0) return 0;
  const ssize_t got = read(fd, ends, sizeof ends);
  REQUIRE(got >= 0 && close(fd) == 0);
  for (ssize_t i = 0; i < got; ++i) count += ends[i] == '\n';
  return count;
}

// Until each rank has told an error or ended: one was killed, and others may crash in MPICH.
static void wait_for_survivors(void) {
  char told[32];
  for (int count = 0; count < ranks;) {
    count = ended_ranks();
    for (int rank = 0; rank < ranks; ++rank) {
      snprintf(told, sizeof told, "told.%d", rank);
      count += access(told, F_OK) == 0;
    }
    nanosleep(&(struct timespec){0, 10000000}, NULL);
  }
}

// Ends this rank if a call failed. It can still close the file if closing needs no messages of the
// MPI; the close reports the error again.
static void stop_if(int code) {
  char told[32];
  int class = MPI_SUCCESS;
  if (code == MPI_SUCCESS) return;
  if (file != MPI_FILE_NULL && shares_a_node) REQUIRE(MPI_File_close(&file) != MPI_SUCCESS);
  snprintf(told, sizeof told, "told.%d", here);
  MPI_Error_class(code, &class);
  const int fd = open(told, O_CREAT | O_WRONLY, 0644);
  REQUIRE(dprintf(fd, "%d", class == MPI_ERR_OTHER) == 1);
  if (stays_until_all_told) wait_for_survivors();
  _exit(3);
}

static void open_file(void) {
  stop_if(MPI_File_open(MPI_COMM_WORLD, "data.bin", MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL,
                        &file));
}

static void set_view(void) {
  MPI_Datatype pieces;
  MPI_Type_vector(piece_count, piece_bytes, ranks * piece_bytes, MPI_BYTE, &pieces);
  MPI_Type_commit(&pieces);
  stop_if(MPI_File_set_view(file, (MPI_Offset)here * piece_bytes, MPI_BYTE, pieces, "native",
                            MPI_INFO_NULL));
  MPI_Type_free(&pieces);
}

static void blocking(void) {
  stop_if(MPI_File_write_at_all(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  stop_if(MPI_File_read_at_all(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
}

// Writes of few bytes in two pieces each.
static void few(void) {
  for (int call = 0; call < 4; ++call)
    stop_if(MPI_File_write_at_all(file, 0, data, 2 * piece_bytes, MPI_BYTE, MPI_STATUS_IGNORE));
}

static void nonblocking(void) {
  MPI_Request request;
  stop_if(MPI_File_iwrite_at_all(file, 0, data, bytes, MPI_BYTE, &request));
  stop_if(MPI_Wait(&request, MPI_STATUS_IGNORE));
  stop_if(MPI_File_iread_at_all(file, 0, data, bytes, MPI_BYTE, &request));
  stop_if(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

// Short calls for which the program waits at once: after two of them, MPI_Wait does the work of
// most.
static void late(void) {
  enum { few = piece_bytes / 2 };
  MPI_Request request;
  for (int call = 0; call < 4; ++call) {
    stop_if(MPI_File_iwrite_at_all(file, 0, data, few, MPI_BYTE, &request));
    stop_if(MPI_Wait(&request, MPI_STATUS_IGNORE));
    stop_if(MPI_File_iread_at_all(file, 0, data, few, MPI_BYTE, &request));
    stop_if(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
}

static void split(void) {
  stop_if(MPI_File_write_at_all_begin(file, 0, data, bytes, MPI_BYTE));
  stop_if(MPI_File_write_at_all_end(file, data, MPI_STATUS_IGNORE));
  stop_if(MPI_File_read_at_all_begin(file, 0, data, bytes, MPI_BYTE));
  stop_if(MPI_File_read_at_all_end(file, data, MPI_STATUS_IGNORE));
}

static void ordered(void) {
  stop_if(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  stop_if(MPI_File_write_ordered(file, data, bytes / 16, MPI_BYTE, MPI_STATUS_IGNORE));
}

// A surviving rank that got an error stays until the other survivors have one, too, so that none of
// them gets it because another survivor has left.
static void ordered_alive(void) {
  stays_until_all_told = 1;
  ordered();
}

// Independent calls at the shared pointer; on one node no rank needs another before the seek.
static void shared(void) {
  stop_if(MPI_File_write_shared(file, data, bytes / 16, MPI_BYTE, MPI_STATUS_IGNORE));
  stop_if(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
}

// The same where the killed rank owns the pointer, which all others need; after a delay, so that
// all ranks have left the earlier calls, which use messages of the MPI.
static void pointer(void) {
  static int calls;
  shares_a_node = 0;
  if (calls++ == 0) nanosleep(&(struct timespec){0, 300000000}, NULL);
  stop_if(MPI_File_write_shared(file, data, 16, MPI_BYTE, MPI_STATUS_IGNORE));
}

// Small independent writes of all ranks at once, which some ranks perform for others. No rank needs
// another before the sync, and no surviving rank may fail before it.
static void alone(void) {
  for (int call = 0; call < 3; ++call)
    CHECK(MPI_File_write_at(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  stop_if(MPI_File_sync(file));
}

static void atomic(void) {
  stop_if(MPI_File_set_atomicity(file, 1));
  blocking();
}

// A large read. A rank that gets an error because another was lost owns its buffer again: no rank
// that still reads may change it.
static void buffers(void) {
  const size_t much = (size_t)bytes * 64;
  unsigned char* const buffer = malloc(much);
  REQUIRE(buffer != NULL);
  CHECK(MPI_File_set_size(file, (MPI_Offset)(much * (size_t)ranks)));
  const int code = MPI_File_read_at_all(file, 0, buffer, (int)much, MPI_BYTE, MPI_STATUS_IGNORE);
  memset(buffer, 0xEE, much);
  if (code != MPI_SUCCESS) nanosleep(&(struct timespec){0, 300000000}, NULL);
  for (size_t i = 0; i < much; ++i) REQUIRE(buffer[i] == 0xEE);
  free(buffer);
  stop_if(code);
}

// The calls that move no data, and repeated opens of a file.
static void whole(void) {
  stop_if(MPI_File_set_size(file, 0));
  stop_if(MPI_File_preallocate(file, bytes));
  stop_if(MPI_File_sync(file));
  stop_if(MPI_File_close(&file));
  open_file();
  set_view();
}

static const struct {
  const char* name;
  void (*calls)(void);
} ways[] = {{"blocking", blocking},
            {"nonblocking", nonblocking},
            {"few", few},
            {"late", late},
            {"split", split},
            {"ordered", ordered},
            {"ordered_alive", ordered_alive},
            {"shared", shared},
            {"pointer", pointer},
            {"alone", alone},
            {"atomic", atomic},
            {"whole", whole},
            {"buffers", buffers}};

int main(int argc, char** argv) {
  void (*calls)(void) = NULL;
  pthread_t thread;
  start_test(&argc, &argv, 40);
  // MPICH's launcher sends this signal to the other ranks, or exits and closes their output pipe.
  signal(SIGUSR1, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  const char* moment = argc > 1 ? argv[1] : "before";
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; ++i)
    if (strcmp(ways[i].name, argc > 2 ? argv[2] : "blocking") == 0) calls = ways[i].calls;
  REQUIRE(calls != NULL);
  open_file();
  set_view();
  if (here == 1 && strcmp(moment, "during") == 0) pthread_create(&thread, NULL, killer, NULL);
  for (int call = 0;; ++call) {
    if (here == 1 && strcmp(moment, "before") == 0 && call == calls_before) raise(SIGKILL);
    calls();
  }
}
