// delegate_net_task: a requester of delegate_net.c, without MPI.
//
//   delegate_net_task RANK spinning|sleeping
#include "delegate_net.h"

#include "shima/delegate_net.h"

static int rank;
static uint64_t there;
static delegate_seat* seat;

static void must(int64_t answer, const char* what) {
  if (answer < 0) die(what);
}

static void ping(size_t bytes) {
  const delegate_request answer = {DELEGATE_RECEIVE, {1, echo_tag, 0}, in, bytes, DELEGATE_IN};
  uint64_t number;
  must(delegate_start(seat, &answer, &number), "receive");
  must(delegate_send(seat, out, bytes, 1, echo_tag), "send");
  must(delegate_wait(seat, number), "receive");
}

static void put(size_t bytes) { must(delegate_put(seat, out, bytes, 1, there), "put"); }

static void reduce(size_t bytes) {
  must(delegate_allreduce(seat, in, bytes / reduced_bytes, DELEGATE_INT64, DELEGATE_MAX),
       "allreduce");
}

static void write_pieces(size_t bytes) {
  static delegate_piece pieces[file_pieces];
  for (size_t i = 0; i < file_pieces; i++)
    pieces[i] = (delegate_piece){(int64_t)((2 * i + (size_t)rank) * bytes), out + i * bytes, bytes};
  must(delegate_write_all(seat, 0, pieces, file_pieces), "write");
}

static void measure_messages(const char* waiting) {
  void* targets;
  must(pvas_import("targets", 10000, &targets, NULL, NULL), "import");
  there = ((struct targets*)targets)->address;
  for (size_t bytes = 1; bytes <= largest; bytes *= 4) {
    memset(out, (int)(bytes % 251), bytes);
    const double ns = measure(ping, bytes) / 2;
    report("send", "delegated", waiting, bytes, ns, memcmp(in, out, bytes) != 0);
    report("put", "delegated", waiting, bytes, measure(put, bytes), 0);
  }
  must(delegate_send(seat, out, 0, 1, end_tag), "end");
}

int main(int argc, char** argv) {
  char name[20];
  if (argc != 3) return 2;
  rank = atoi(argv[1]);
  const int spin = strcmp(argv[2], "spinning") == 0;
  pin(spin ? 2 * rank + 1 : rank);
  const delegate_options options = {.spin_us = spin ? 1000000 : 0};
  snprintf(name, sizeof name, "net %d", rank);
  must(delegate_join(name, 10000, &options, &seat), "join");
  if (rank == 0) measure_messages(argv[2]);
  must(delegate_barrier(seat), "barrier");
  for (size_t bytes = reduced_bytes; bytes <= largest; bytes *= 8) {
    const double ns = measure(reduce, bytes);
    if (rank == 0) report("allreduce", "delegated", argv[2], bytes, ns, 0);
  }
  for (size_t bytes = first_file_piece; bytes <= largest / file_pieces; bytes *= 8) {
    const double ns = measure(write_pieces, bytes);
    if (rank == 0) report("write_all of 256 pieces", "delegated", argv[2], bytes, ns, 0);
  }
  delegate_leave(seat);
  return 0;
}
