// waitall: what MPI_Waitall costs under a layer that watches requests, in nanoseconds.
//
// Two ranks. "messages": an exchange of 8 bytes whose requests are all the MPI's own, while a file
// is open. "message last" and "file last": rank 0 waits for a message and a file request together;
// rank 1 sleeps for some milliseconds, which leaves it a core, and then completes the last of the
// two. The time is from that moment until MPI_Waitall of rank 0 has returned, by the clock that
// both share. Each figure is the median of its rounds.
//
//     waitall FILE    one JSON object per line

#include "measure.h"

#include <time.h>

enum { exchange_rounds = 15, exchanges = 2000, late_rounds = 60, block_bytes = 64 << 10 };

static int rank;
static char block[block_bytes];

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* ns, int count) {
  qsort(ns, (size_t)count, sizeof ns[0], by_value);
  return ns[count / 2];
}

static void exchange(void) {
  long out = rank, in;
  MPI_Request requests[2];
  check(MPI_Irecv(&in, 1, MPI_LONG, 1 - rank, 1, MPI_COMM_WORLD, &requests[0]), "irecv");
  check(MPI_Isend(&out, 1, MPI_LONG, 1 - rank, 1, MPI_COMM_WORLD, &requests[1]), "isend");
  check(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), "waitall");
  if (in != 1 - rank) fail("an exchange returned another value");
}

static double messages_ns(void) {
  double ns[exchange_rounds];
  for (int r = 0; r < exchange_rounds; ++r) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double started = now_ns();
    for (int i = 0; i < exchanges; ++i) exchange();
    ns[r] = (now_ns() - started) / exchanges;
  }
  return median(ns, exchange_rounds);
}

static void sleep_some_ms(int round) { usleep((useconds_t)(1000 + round % 7 * 531)); }

// Rank 1 sends the time at which it sends.
static double message_last_ns(MPI_File file) {
  double ns[late_rounds], sent = 0;
  for (int r = 0; r < late_rounds; ++r) {
    MPI_Request requests[2];
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
      sleep_some_ms(r);
      sent = now_ns();
      check(MPI_Send(&sent, 1, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD), "send");
      continue;
    }
    check(MPI_Irecv(&sent, 1, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD, &requests[0]), "irecv");
    check(MPI_File_iwrite_at(file, 0, block, block_bytes, MPI_BYTE, &requests[1]), "iwrite_at");
    check(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), "waitall");
    ns[r] = now_ns() - sent;
  }
  return rank == 0 ? median(ns, late_rounds) : 0;
}

// Rank 1 enters the collective write late; the write is complete no later than its own wait.
static double file_last_ns(MPI_File file) {
  double ns[late_rounds];
  for (int r = 0; r < late_rounds; ++r) {
    MPI_Request requests[2];
    double returned, done = 0;
    int early = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
      check(MPI_Send(&early, 1, MPI_INT, 0, 3, MPI_COMM_WORLD), "send");
      sleep_some_ms(r);
      check(MPI_File_iwrite_at_all(file, block_bytes, block, block_bytes, MPI_BYTE, &requests[1]),
            "iwrite_at_all");
      check(MPI_Wait(&requests[1], MPI_STATUS_IGNORE), "wait");
      done = now_ns();
      check(MPI_Send(&done, 1, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD), "send");
      continue;
    }
    check(MPI_Irecv(&early, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &requests[0]), "irecv");
    check(MPI_File_iwrite_at_all(file, 0, block, block_bytes, MPI_BYTE, &requests[1]),
          "iwrite_at_all");
    check(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), "waitall");
    returned = now_ns();
    check(MPI_Recv(&done, 1, MPI_DOUBLE, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "recv");
    ns[r] = returned > done ? returned - done : 0;
  }
  return rank == 0 ? median(ns, late_rounds) : 0;
}

static void print(const char* thing, double ns) {
  if (rank == 0) printf("{\"program\":\"waitall\",\"thing\":\"%s\",\"ns\":%.1f}\n", thing, ns);
}

int main(int argc, char** argv) {
  int ranks;
  MPI_File file;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 2 || ranks != 2) fail("usage: waitall FILE, on 2 ranks");
  check(
      MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
      "open");
  print("messages", messages_ns());
  print("message last", message_last_ns(file));
  print("file last", file_last_ns(file));
  check(MPI_File_close(&file), "close");
  if (rank == 0) unlink(argv[1]);
  MPI_Finalize();
  return 0;
}
