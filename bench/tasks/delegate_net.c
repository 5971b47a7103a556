// delegate_net: the cost of MPI calls by another task, and the size from which it is negligible.
//
//   shima run --one-space -n 2 delegate_net REQUESTER FILE
//
// First the ranks measure their own calls: a message to the other rank and back, a put, an
// allreduce, and writing 256 pieces of a file by one collective call. Then each starts REQUESTER
// (delegate_net_task.c) in its space and serves it, and the requester measures the same. With four
// cores or more every process has its own and polls without sleeping; with fewer a requester shares
// its rank's core and sleeps. Rank 0 and its requester print a JSON object per figure. The bytes
// received are compared.
#include "delegate_net.h"

#include "shima/delegate_mpi.h"

static int rank;
static delegate_mpi* net;
static MPI_File file;
static uint64_t there;  // the other rank's memory, for puts

static void ping(size_t bytes) {
  MPI_Send(out, (int)bytes, MPI_BYTE, 1, echo_tag, delegate_mpi_comm(net));
  MPI_Recv(in, (int)bytes, MPI_BYTE, 1, echo_tag, delegate_mpi_comm(net), MPI_STATUS_IGNORE);
}

static void put(size_t bytes) {
  MPI_Put(out, (int)bytes, MPI_BYTE, 1, (MPI_Aint)there, (int)bytes, MPI_BYTE,
          delegate_mpi_window(net));
  MPI_Win_flush(1, delegate_mpi_window(net));
}

static void reduce(size_t bytes) {
  MPI_Allreduce(MPI_IN_PLACE, in, (int)(bytes / reduced_bytes), MPI_INT64_T, MPI_MAX,
                MPI_COMM_WORLD);
}

// Interleaved pieces of both ranks.
static void write_pieces(size_t bytes) {
  MPI_Datatype view;
  MPI_Type_vector(file_pieces, (int)bytes, (int)(2 * bytes), MPI_BYTE, &view);
  MPI_Type_commit(&view);
  MPI_File_set_view(file, (MPI_Offset)((size_t)rank * bytes), MPI_BYTE, view, "native",
                    MPI_INFO_NULL);
  MPI_File_write_at_all(file, 0, out, (int)(file_pieces * bytes), MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_Type_free(&view);
}

// Sends messages back until the end message; puts of other ranks need this rank to be in MPI.
static void echo(void) {
  for (;;) {
    MPI_Status status;
    int bytes;
    MPI_Recv(in, largest, MPI_BYTE, 0, MPI_ANY_TAG, delegate_mpi_comm(net), &status);
    if (status.MPI_TAG == end_tag) return;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    MPI_Send(in, bytes, MPI_BYTE, 0, echo_tag, delegate_mpi_comm(net));
  }
}

static void measure_own(void) {
  for (size_t bytes = 1; rank == 0 && bytes <= largest; bytes *= 4) {
    memset(out, (int)(bytes % 251), bytes);
    const double ns = measure(ping, bytes) / 2;
    report("send", "own", "", bytes, ns, memcmp(in, out, bytes) != 0);
    report("put", "own", "", bytes, measure(put, bytes), 0);
  }
  if (rank == 0) MPI_Send(out, 0, MPI_BYTE, 1, end_tag, delegate_mpi_comm(net));
  if (rank == 1) echo();
  for (size_t bytes = reduced_bytes; bytes <= largest; bytes *= 8) {
    const double ns = measure(reduce, bytes);
    if (rank == 0) report("allreduce", "own", "", bytes, ns, 0);
  }
  for (size_t bytes = first_file_piece; bytes <= largest / file_pieces; bytes *= 8) {
    const double ns = measure(write_pieces, bytes);
    if (rank == 0) report("write_all of 256 pieces", "own", "", bytes, ns, 0);
  }
}

static int start_requester(pvas_space* space, const char* program, const char* waiting) {
  static struct targets targets;
  char text[20];
  int task = -1;
  snprintf(text, sizeof text, "%d", rank);
  targets.address = there;
  if (rank == 0 && pvas_export("targets", &targets, sizeof targets)) die("export");
  char* arguments[] = {(char*)program, text, (char*)waiting, NULL};
  if (pvas_spawn(space, &(pvas_program){.file = program, .arguments = arguments}, &task))
    die("starting a requester");
  return task;
}

static void open_all(int spin, const char* path, delegate_desk** desk) {
  const delegate_options desk_options = {.spin_us = spin ? 1000000 : 0};
  const delegate_mpi_options options = {.members = 1, .puts = 1, .spin_us = spin ? 1000000 : 0};
  char name[20];
  snprintf(name, sizeof name, "net %d", rank);
  if (delegate_open(name, &desk_options, desk)) die("opening a desk");
  if (delegate_mpi_open(*desk, MPI_COMM_WORLD, &options, &net)) die("serving MPI");
  if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file))
    die("opening a file");
  if (delegate_mpi_file(net, file) != 0) die("a file's number");
  there = (uint64_t)(uintptr_t)in;
  MPI_Win_attach(delegate_mpi_window(net), in, sizeof in);
  MPI_Bcast(&there, sizeof there, MPI_BYTE, 1, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  delegate_desk* desk = NULL;
  pvas_space* space = NULL;
  int status = -1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 3) return 2;
  const int spin = sysconf(_SC_NPROCESSORS_ONLN) >= 4;
  pin(spin ? 2 * rank : rank);
  open_all(spin, argv[2], &desk);
  measure_own();
  MPI_Barrier(MPI_COMM_WORLD);
  if (pvas_own(&space)) die("no task of a space");
  int task = rank == 0 ? start_requester(space, argv[1], spin ? "spinning" : "sleeping") : -1;
  if (rank == 1) echo();
  if (rank == 1) task = start_requester(space, argv[1], spin ? "spinning" : "sleeping");
  if (delegate_mpi_serve(net)) die("serving");
  if (pvas_wait(space, task, -1, &status) || status != 0) die("a requester failed");
  MPI_File_close(&file);
  MPI_Win_detach(delegate_mpi_window(net), in);
  delegate_mpi_close(net);
  delegate_close(desk);
  pvas_destroy(space);
  MPI_Finalize();
  return 0;
}
