// overlap: whether a nonblocking transfer makes progress while the caller computes.
//
// First the transfer alone is timed, then computing alone, sized to take about as long, then both:
// start the transfer, compute, wait. Full overlap takes as long as the longer of the two, no
// overlap the sum. All ranks compute at the same time, without memory traffic. In the way "threads"
// a plain thread does the rank's part with pwrite or pread, which is what a program could do by
// hand.
//
//     overlap --way at|at_all|threads --op write|read --mib MIB --file FILE [--direct]
//
// "at": each rank its own half; "at_all": interleaved pieces of 16 KiB, in one collective call;
// "threads" moves the same as "at". --direct: O_DIRECT for the threads; MPI-IO gets hints instead.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "measure.h"

enum { piece_bytes = 16384, call_bytes = 2 << 20, rounds = 3 };
enum way { AT, AT_ALL, THREADS };

struct job {
  enum way way;
  bool write, direct;
  const char* path;
  size_t rank_bytes;
  int rank, ranks, fd;
  char* buffer;
  MPI_File file;
};

// --- the transfer -----------------------------------------------------------------------------

static void* move_by_hand(void* argument) {
  const struct job* job = argument;
  const off_t base = (off_t)job->rank * (off_t)job->rank_bytes;
  for (size_t done = 0; done < job->rank_bytes; done += call_bytes) {
    const off_t at = base + (off_t)done;
    const ssize_t n = job->write ? pwrite(job->fd, job->buffer + done, call_bytes, at)
                                 : pread(job->fd, job->buffer + done, call_bytes, at);
    if (n != call_bytes) fail("pwrite or pread was short");
  }
  return NULL;
}

static void start_mpi(struct job* job, MPI_Request* request) {
  const int count = (int)job->rank_bytes;
  const MPI_Offset at = (MPI_Offset)job->rank * count;
  if (job->way == AT && job->write)
    check(MPI_File_iwrite_at(job->file, at, job->buffer, count, MPI_BYTE, request), "iwrite_at");
  else if (job->way == AT)
    check(MPI_File_iread_at(job->file, at, job->buffer, count, MPI_BYTE, request), "iread_at");
  else if (job->write)
    check(MPI_File_iwrite_all(job->file, job->buffer, count, MPI_BYTE, request), "iwrite_all");
  else
    check(MPI_File_iread_all(job->file, job->buffer, count, MPI_BYTE, request), "iread_all");
}

// --- computing --------------------------------------------------------------------------------

static volatile double sink;

static void compute(long steps) {
  double x = 1.0;
  for (long i = 0; i < steps; i++) x = x * 1.0000001 + 1e-9;
  sink = x;
}

// --- one round: the transfer, computing, or both ------------------------------------------------

static double round_of(struct job* job, bool transfers, long steps) {
  pthread_t thread;
  MPI_Request request;
  if (job->way == AT_ALL) check(MPI_File_seek(job->file, 0, MPI_SEEK_SET), "seek");
  if (!job->direct && job->rank == 0) sync();
  meet();
  const double started = MPI_Wtime();
  if (transfers && job->way == THREADS && pthread_create(&thread, NULL, move_by_hand, job) != 0)
    fail("cannot create a thread");
  if (transfers && job->way != THREADS) start_mpi(job, &request);
  compute(steps);
  if (transfers && job->way == THREADS) pthread_join(thread, NULL);
  if (transfers && job->way != THREADS) check(MPI_Wait(&request, MPI_STATUS_IGNORE), "wait");
  const double mine = MPI_Wtime() - started;
  double slowest;
  meet();
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

static double least_of_rounds(struct job* job, bool transfers, long steps) {
  double least = 1e30;
  for (int i = 0; i < rounds; i++) {
    const double seconds = round_of(job, transfers, steps);
    if (seconds < least) least = seconds;
  }
  return least;
}

// --- the program ------------------------------------------------------------------------------

static void open_file(struct job* job) {
  if (job->way == THREADS) {
    job->fd = open(job->path, O_CREAT | O_RDWR | (job->direct ? O_DIRECT : 0), 0666);
    if (job->fd < 0) fail("cannot open the file");
    return;
  }
  MPI_Datatype pieces;
  check(MPI_File_open(MPI_COMM_WORLD, job->path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                      &job->file),
        "open");
  if (job->way == AT) return;
  MPI_Type_vector((int)(job->rank_bytes / piece_bytes), piece_bytes, piece_bytes * job->ranks,
                  MPI_BYTE, &pieces);
  MPI_Type_commit(&pieces);
  check(MPI_File_set_view(job->file, (MPI_Offset)job->rank * piece_bytes, MPI_BYTE, pieces,
                          "native", MPI_INFO_NULL),
        "set_view");
  MPI_Type_free(&pieces);
}

static void close_file(struct job* job) {
  if (job->way == THREADS)
    close(job->fd);
  else
    check(MPI_File_close(&job->file), "close");
}

// Writes every byte of the file before anything is timed.
static void prepare(struct job* job) {
  if (posix_memalign((void**)&job->buffer, 4096, job->rank_bytes) != 0) fail("no memory");
  memset(job->buffer, 'a' + job->rank, job->rank_bytes);
  if (job->rank == 0) {
    const int fd = open(job->path, O_CREAT | O_RDWR | O_TRUNC, 0666);
    for (int i = 0; i < job->ranks; i++)
      for (size_t done = 0; done < job->rank_bytes; done += call_bytes)
        if (write(fd, job->buffer, call_bytes) != call_bytes) fail("cannot write the file");
    fsync(fd);
    if (job->direct) posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
  }
  meet();
  open_file(job);
}

static void measure(struct job* job) {
  const double io_s = least_of_rounds(job, true, 0);
  const long probe_steps = 20000000;
  const double probe_s = least_of_rounds(job, false, probe_steps);
  const long steps = (long)((double)probe_steps * io_s / probe_s);
  const double compute_s = least_of_rounds(job, false, steps);
  const double both_s = least_of_rounds(job, true, steps);
  const double longer_s = io_s > compute_s ? io_s : compute_s;
  if (job->rank == 0)
    printf("{\"io_s\": %.6f, \"compute_s\": %.6f, \"both_s\": %.6f, \"ratio\": %.4f}\n", io_s,
           compute_s, both_s, both_s / longer_s);
}

static struct job parse(int argc, char** argv) {
  struct job job = {.path = "overlap.dat", .rank_bytes = 64 << 20, .write = true};
  for (int i = 1; i < argc; i++) {
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(argv[i], "--direct") == 0) {
      job.direct = true;
      continue;
    }
    if (strcmp(argv[i], "--way") == 0)
      job.way = strcmp(value, "at") == 0 ? AT : strcmp(value, "at_all") == 0 ? AT_ALL : THREADS;
    else if (strcmp(argv[i], "--op") == 0)
      job.write = strcmp(value, "write") == 0;
    else if (strcmp(argv[i], "--mib") == 0)
      job.rank_bytes = (size_t)atol(value) << 20;
    else if (strcmp(argv[i], "--file") == 0)
      job.path = value;
    else
      fail(
          "usage: overlap --way at|at_all|threads --op write|read --mib MIB --file FILE "
          "[--direct]");
    i++;
  }
  return job;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  struct job job = parse(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
  prepare(&job);
  measure(&job);
  close_file(&job);
  free(job.buffer);
  MPI_Finalize();
}
