// RANKS: 4
// Bytes between the pieces of a view belong to another writer and may change at any time.
//
// The last rank is that writer: through POSIX calls, without any lock, it writes the even pieces of
// the file while all others write the odd ones through MPI-IO. A writer that reads a block, changes
// its pieces and writes the block back would restore old even pieces sooner or later.
#include "mpi_check.h"

enum { piece_bytes = 500, piece_count = 2000, rounds = 8 };

static const char* const path = "neighbours.bin";
static MPI_Comm writers;  // all but the last rank

// Writes each even piece several times; the round's own value is written last and counts.
static void write_even(int fd, int round) {
  unsigned char piece[piece_bytes];
  const int pieces = piece_count * (ranks - 1);
  for (int again = 3; again >= 0; --again) {
    memset(piece, again == 0 ? round + 1 : 200 + again, sizeof piece);
    for (int i = 0; i < pieces; ++i)
      REQUIRE(pwrite(fd, piece, sizeof piece, (off_t)(2 * i) * piece_bytes) == piece_bytes);
  }
}

static void write_odd(MPI_File file, int round, int collective) {
  static unsigned char data[piece_bytes * piece_count];
  memset(data, 100 + round, sizeof data);
  const int bytes = sizeof data;
  if (collective)
    CHECK(MPI_File_write_at_all(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  else
    CHECK(MPI_File_write_at(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
}

static void check_round(int round) {
  long long size = 0;
  unsigned char* found = contents_of(path, &size);
  const long long pieces = 2LL * piece_count * (ranks - 1);
  REQUIRE(size == pieces * piece_bytes);
  for (long long i = 0; i < size; ++i) {
    const int odd = i / piece_bytes % 2 != 0;
    if (!odd && found[i] != round + 1) give_up("a neighbour's byte was overwritten", __LINE__);
    if (odd && found[i] != 100 + round) give_up("a byte is missing", __LINE__);
  }
  free(found);
}

static MPI_File open_odd(MPI_Info info) {
  MPI_File file;
  MPI_Datatype odd;
  CHECK(MPI_File_open(writers, path, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file));
  MPI_Type_vector(piece_count, piece_bytes, 2 * (ranks - 1) * piece_bytes, MPI_BYTE, &odd);
  MPI_Type_commit(&odd);
  CHECK(MPI_File_set_view(file, (MPI_Offset)(2 * here + 1) * piece_bytes, MPI_BYTE, odd, "native",
                          MPI_INFO_NULL));
  MPI_Type_free(&odd);
  return file;
}

static void run(const char* key, const char* value, int collective) {
  const int posix_writer = here == ranks - 1;
  MPI_Info info = info_with(key, value);
  MPI_File file = posix_writer ? MPI_FILE_NULL : open_odd(info);
  int fd = posix_writer ? open(path, O_RDWR | O_CREAT, 0644) : -1;
  for (int round = 0; round < rounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (posix_writer)
      write_even(fd, round);
    else
      write_odd(file, round, collective);
    MPI_Barrier(MPI_COMM_WORLD);
    if (posix_writer) check_round(round);
  }
  MPI_Info_free(&info);
  if (posix_writer)
    close(fd);
  else
    CHECK(MPI_File_close(&file));
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 60);
  MPI_Comm_split(MPI_COMM_WORLD, here == ranks - 1, here, &writers);
  run("shima_reach", "automatic", 0);
  run("shima_reach", "automatic", 1);
  run("shima_reach", "pull", 1);
  run("shima_reach", "pack", 1);
  run("romio_cb_write", "disable", 1);
  MPI_Comm_free(&writers);
  return end_test();
}
