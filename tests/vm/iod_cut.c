// RANKS: none
// (started by soak/iod_power.py on its own machines) Ranks write to an I/O node until its machine
// loses its power: iod_cut FILE ROUNDS.
//
// In each round every rank writes its pieces of the whole file, by collective or by independent
// calls, and syncs. A value identifies its round. Rank 0 prints "synced ROUND" once all have synced
// without an error, and after an error "error", with the number of ranks that had MPI_ERR_IO.
#include "mpi/expect.h"

enum { piece_bytes = 1000, pieces = 120 };

static int is_lost(int error) {
  int class = MPI_SUCCESS;
  MPI_Error_class(error, &class);
  return class == MPI_ERR_IO;
}

int main(int argc, char** argv) {
  static unsigned char mine[piece_bytes];
  start_test(&argc, &argv, 3600);  // the clock of a guest may run fast
  REQUIRE(argc == 3);
  MPI_File fh = open_world(argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR);
  int lost = 0;
  for (int round = 1; round <= atoi(argv[2]) && !lost; ++round) {
    int error = MPI_SUCCESS;
    memset(mine, round, sizeof mine);
    for (int i = here; i < pieces; i += ranks) {
      const MPI_Offset at = (MPI_Offset)i * piece_bytes;
      const int one =
          round % 2 == 0
              ? MPI_File_write_at_all(fh, at, mine, piece_bytes, MPI_BYTE, MPI_STATUS_IGNORE)
              : MPI_File_write_at(fh, at, mine, piece_bytes, MPI_BYTE, MPI_STATUS_IGNORE);
      if (error == MPI_SUCCESS) error = one;
    }
    const int synced = MPI_File_sync(fh);
    if (error == MPI_SUCCESS) error = synced;
    const int mine_is_lost = error == MPI_SUCCESS ? 0 : is_lost(error) ? 1 : 1000;
    MPI_Allreduce(&mine_is_lost, &lost, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (here == 0 && !lost) printf("synced %d\n", round);
    fflush(stdout);
  }
  if (here == 0 && lost) printf("error %d\n", lost);
  MPI_File_close(&fh);  // an error, after a loss
  return end_test();
}
