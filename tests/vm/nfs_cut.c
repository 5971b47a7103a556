// RANKS: none
// (started by soak/nfs_power.py on its own machines) Ranks on NFS clients write, while one machine
// after another loses its power: nfs_cut FILE ROUNDS.
//
// In each round every rank writes its pieces of the whole file, by collective or by independent
// calls, and all sync. A value identifies its round. Rank 0 prints "synced ROUND" when all have
// synced; after that, the server's bytes must be of this round or of a later one.
#include "mpi/expect.h"

enum { piece_bytes = 1000, pieces = 120 };

int main(int argc, char** argv) {
  static unsigned char mine[piece_bytes];
  start_test(&argc, &argv, 3600);  // the clock of a guest may run fast
  REQUIRE(argc == 3);
  MPI_File fh = open_world(argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR);
  for (int round = 1; round <= atoi(argv[2]); ++round) {
    memset(mine, round, sizeof mine);
    for (int i = here; i < pieces; i += ranks) {
      const MPI_Offset at = (MPI_Offset)i * piece_bytes;
      if (round % 2 == 0) {
        EXPECT_OK(MPI_File_write_at_all(fh, at, mine, piece_bytes, MPI_BYTE, MPI_STATUS_IGNORE));
      } else {
        EXPECT_OK(MPI_File_write_at(fh, at, mine, piece_bytes, MPI_BYTE, MPI_STATUS_IGNORE));
      }
    }
    sync_barrier_sync(fh);
    if (here == 0) printf("synced %d\n", round);
    fflush(stdout);
  }
  EXPECT_OK(MPI_File_close(&fh));
  return end_test();
}
