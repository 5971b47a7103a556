// traced: an array by columns, again and again, in blocks of calls that are traced and blocks that
// are not, in turn, so that what else happens on the machine meets both.
//
// UT: each rank seeks and accesses its pieces of 16 KiB one by one; COL: all ranks access 64 rows
// in a collective call, through a view. The first pass, which creates the file, is not measured.
// Each pass exchanges the two kinds of blocks, so that both visit all places of the file. Not
// under `shima run --trace`, the blocks do not differ.
//
//     traced FILE MIB WAY OP PASSES     prints a JSON object

#include "measure.h"

#include <string.h>

enum {
  piece_bytes = 16384,
  rows_of_a_call = 64,
  calls_of_a_block = 256,
  joint_calls_of_a_block = 8
};

struct job {
  MPI_File file;
  bool collective, write;
  int rank, ranks;
  long rows;
  char* memory;
};

struct times {
  double s[2];  // without, and with a trace
  long calls[2];
};

static void move(const struct job* j, long call) {
  MPI_Status* const ignored = MPI_STATUS_IGNORE;
  if (j->collective) {
    const int len = rows_of_a_call * piece_bytes;
    const MPI_Offset at = call * len;
    check(j->write ? MPI_File_write_at_all(j->file, at, j->memory, len, MPI_BYTE, ignored)
                   : MPI_File_read_at_all(j->file, at, j->memory, len, MPI_BYTE, ignored),
          "a collective call");
    return;
  }
  check(MPI_File_seek(j->file, (call * j->ranks + j->rank) * piece_bytes, MPI_SEEK_SET), "seek");
  check(j->write ? MPI_File_write(j->file, j->memory, piece_bytes, MPI_BYTE, ignored)
                 : MPI_File_read(j->file, j->memory, piece_bytes, MPI_BYTE, ignored),
        "a call");
}

// The blocks of a pass in the order 0 1 1 0; of the next pass, 1 0 0 1.
static void measure_pass(const struct job* j, long pass, struct times* sums) {
  const long calls = j->collective ? j->rows / rows_of_a_call : j->rows;
  const long of_a_block = j->collective ? joint_calls_of_a_block : calls_of_a_block;
  for (long block = 0; (block + 1) * of_a_block <= calls; ++block) {
    const int traced = (int)(((block + 1) / 2 + pass) % 2);
    MPI_Pcontrol(traced);
    const double begun = MPI_Wtime();
    for (long i = 0; i < of_a_block; ++i) move(j, block * of_a_block + i);
    sums->s[traced] += MPI_Wtime() - begun;
    sums->calls[traced] += of_a_block;
  }
  MPI_Pcontrol(0);
}

// All bytes of a rank's pieces are the letter of its rank.
static long wrong_bytes(const struct job* j, size_t len) {
  long wrong = 0;
  for (size_t i = 0; i < len; ++i) wrong += j->memory[i] != 'a' + j->rank;
  return wrong;
}

// Of the file's first and last calls, after the measurement.
static long wrong_in_file(struct job* j) {
  const long calls = j->collective ? j->rows / rows_of_a_call : j->rows;
  const size_t len = j->collective ? rows_of_a_call * piece_bytes : piece_bytes;
  const long shown[] = {0, calls / 2, calls - 1};
  long wrong = 0;
  j->write = false;
  for (int i = 0; i < 3; ++i) {
    memset(j->memory, 0, len);
    move(j, shown[i]);
    wrong += wrong_bytes(j, len);
  }
  return wrong;
}

static void set_view(const struct job* j) {
  MPI_Datatype piece, spaced;
  MPI_Type_contiguous(piece_bytes, MPI_BYTE, &piece);
  MPI_Type_create_resized(piece, 0, (MPI_Aint)piece_bytes * j->ranks, &spaced);
  MPI_Type_commit(&spaced);
  check(MPI_File_set_view(j->file, (MPI_Offset)piece_bytes * j->rank, MPI_BYTE, spaced, "native",
                          MPI_INFO_NULL),
        "set_view");
  MPI_Type_free(&piece);
  MPI_Type_free(&spaced);
}

static void create(struct job* j, const char* path) {
  MPI_Pcontrol(0);
  check(
      MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &j->file),
      "open");
  const struct job first = {j->file, false, true, j->rank, j->ranks, j->rows, j->memory};
  for (long row = 0; row < j->rows; ++row) move(&first, row);
  meet();
  if (j->collective) set_view(j);
}

static double of_all(double mine) {
  double all;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

static void report(const struct job* j, const struct times* sums, long wrong) {
  double mib_s[2];
  const double call_mib = (double)piece_bytes * (j->collective ? rows_of_a_call : 1) / (1 << 20);
  for (int i = 0; i < 2; ++i)
    mib_s[i] = of_all((double)sums->calls[i]) * call_mib / (of_all(sums->s[i]) / j->ranks);
  if (j->rank == 0)
    printf(
        "{\"program\":\"traced\",\"without_mib_s\":%.1f,\"traced_mib_s\":%.1f,"
        "\"traced_calls\":%ld,\"wrong_bytes\":%ld}\n",
        mib_s[0], mib_s[1], sums->calls[1] * j->ranks, wrong);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  struct job j = {0};
  MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &j.ranks);
  if (argc != 6) fail("usage: traced FILE MIB UT|COL write|read PASSES");
  j.rows = atol(argv[2]) * (1 << 20) / piece_bytes / j.ranks;
  j.collective = strcmp(argv[3], "COL") == 0;
  if (j.rows < rows_of_a_call * joint_calls_of_a_block)
    fail("MIB is too little for a block of calls");
  j.write = strcmp(argv[4], "write") == 0;
  j.memory = malloc(rows_of_a_call * piece_bytes);
  memset(j.memory, 'a' + j.rank, rows_of_a_call * piece_bytes);
  create(&j, argv[1]);
  if (!j.write) memset(j.memory, 0, rows_of_a_call * piece_bytes);
  struct times sums = {{0, 0}, {0, 0}};
  for (long pass = 0; pass < atol(argv[5]); ++pass) {
    meet();
    measure_pass(&j, pass, &sums);
  }
  report(&j, &sums, sum_over_ranks(wrong_in_file(&j)));
  check(MPI_File_close(&j.file), "close");
  free(j.memory);
  MPI_Finalize();
  return 0;
}
