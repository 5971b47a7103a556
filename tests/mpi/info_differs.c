/* Ranks with different hints: the open may refuse, or agree on one value; no bytes may be lost.
 *
 * RANKS: 2 4
 * ENV: SHIMA_LOG=error
 */
#include "expect.h"

enum { piece = 16384, pieces = 64 };

static MPI_Info hints_of_rank(void) {
  MPI_Info info;
  char agents[16];
  sprintf(agents, "%d", here + 1);
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_nodes", agents);
  MPI_Info_set(info, "cb_buffer_size", here ? "65536" : "1048576");
  MPI_Info_set(info, "romio_cb_write", here ? "enable" : "disable");
  return info;
}

/* Interleaved pieces by all ranks, read back by each rank independently. */
static void write_and_check(MPI_File fh) {
  static char mine[piece * pieces], found[piece];
  MPI_Datatype mine_of_all;
  memset(mine, here + 1, sizeof mine);
  MPI_Type_vector(pieces, piece, piece * ranks, MPI_BYTE, &mine_of_all);
  MPI_Type_commit(&mine_of_all);
  EXPECT_OK(MPI_File_set_view(fh, (MPI_Offset)here * piece, MPI_BYTE, mine_of_all, "native",
                              MPI_INFO_NULL));
  EXPECT_OK(MPI_File_write_all(fh, mine, sizeof mine, MPI_BYTE, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  EXPECT_OK(MPI_File_sync(fh));
  for (int i = 0; i < pieces * ranks; i++) {
    EXPECT_OK(
        MPI_File_read_at(fh, (MPI_Offset)i * piece, found, piece, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int k = 0; k < piece; k++) EXPECT_EQ(found[k], i % ranks + 1);
  }
  MPI_Type_free(&mine_of_all);
}

int main(int argc, char** argv) {
  MPI_File fh;
  MPI_Info info;
  const int amode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
  start_test(&argc, &argv, 60);
  info = hints_of_rank();
  int at_open = class_of(MPI_File_open(MPI_COMM_WORLD, "info_differs.out", amode, info, &fh));
  EXPECT(at_open == MPI_SUCCESS || at_open == MPI_ERR_NOT_SAME);
  if (at_open == MPI_SUCCESS) {
    write_and_check(fh);
    EXPECT_OK(MPI_File_close(&fh));
  }
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "info_differs.out", amode, MPI_INFO_NULL, &fh));
  int later = class_of(MPI_File_set_info(fh, info));
  EXPECT(later == MPI_SUCCESS || later == MPI_ERR_NOT_SAME);
  MPI_Info_free(&info);
  write_and_check(fh);
  EXPECT_OK(MPI_File_close(&fh));
  return end_test();
}
