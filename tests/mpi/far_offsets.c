/* Offsets beyond 2^40 in sparse files, with the regions and units that need large numbers: views
 * whose pieces are far apart, collective and independent, sizes, and the unwritten bytes between
 * them.
 *
 * RANKS: 1 4
 * VARIANTS: striped regions
 */
#include <string.h>

#include "expect.h"

#define TEBI ((MPI_Offset)1 << 40)

enum { piece = 3000, pieces = 5 };

static char value(MPI_Offset at) { return (char)(at / 7 + (at >> 37) + 1); }

/* Each rank's pieces are between the others', `pitch` apart. */
static void move_far(MPI_File fh, MPI_Offset from, MPI_Aint pitch, int together) {
  MPI_Datatype row, rows;
  char bytes[piece * pieces], back[piece * pieces];
  for (int i = 0; i < piece * pieces; ++i)
    bytes[i] = value(from + here * piece + i / piece * (MPI_Offset)pitch + i % piece);
  MPI_Type_contiguous(piece, MPI_CHAR, &row);
  MPI_Type_create_hvector(pieces, 1, pitch, row, &rows);
  MPI_Type_commit(&rows);
  EXPECT_OK(MPI_File_set_view(fh, from + here * piece, MPI_CHAR, rows, "native", MPI_INFO_NULL));
  memset(back, 0, sizeof back);
  if (together) {
    EXPECT_OK(MPI_File_write_at_all(fh, 0, bytes, sizeof bytes, MPI_CHAR, MPI_STATUS_IGNORE));
    EXPECT_OK(MPI_File_read_at_all(fh, 0, back, sizeof back, MPI_CHAR, MPI_STATUS_IGNORE));
  } else {
    EXPECT_OK(MPI_File_write_at(fh, 0, bytes, sizeof bytes, MPI_CHAR, MPI_STATUS_IGNORE));
    EXPECT_OK(MPI_File_read_at(fh, 0, back, sizeof back, MPI_CHAR, MPI_STATUS_IGNORE));
  }
  EXPECT_EQ(memcmp(bytes, back, sizeof bytes), 0);
  sync_barrier_sync(fh);
  /* All ranks' pieces, read by each rank, and zeros after them. */
  view_native(fh, 0, MPI_CHAR, MPI_CHAR);
  for (int i = 0; i < pieces; ++i) {
    const MPI_Offset at = from + i * (MPI_Offset)pitch;
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_OK(MPI_File_read_at(fh, at + rank * piece, back, piece, MPI_CHAR, MPI_STATUS_IGNORE));
      for (int j = 0; j < piece; ++j) EXPECT_EQ(back[j], value(at + rank * piece + j));
    }
    if (i + 1 == pieces) continue;
    EXPECT_OK(MPI_File_read_at(fh, at + ranks * piece, back, piece, MPI_CHAR, MPI_STATUS_IGNORE));
    for (int j = 0; j < piece; ++j) EXPECT_EQ(back[j], 0);
  }
  MPI_Offset size = 0;
  EXPECT_OK(MPI_File_get_size(fh, &size));
  EXPECT_EQ(size, from + (pieces - 1) * (MPI_Offset)pitch + ranks * piece);
  EXPECT_OK(MPI_File_set_size(fh, size - 1));
  EXPECT_OK(MPI_File_get_size(fh, &size));
  EXPECT_EQ(size, from + (pieces - 1) * (MPI_Offset)pitch + ranks * piece - 1);
  MPI_Type_free(&row);
  MPI_Type_free(&rows);
}

static void move_with(const char* name, const char* regions) {
  MPI_File fh;
  MPI_Info info = MPI_INFO_NULL;
  if (regions != NULL) {
    MPI_Info_create(&info);
    MPI_Info_set(info, "shima_regions", regions);
  }
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &fh));
  for (int together = 0; together < 2; ++together) {
    EXPECT_OK(MPI_File_set_size(fh, 0));
    move_far(fh, TEBI - 4000, TEBI, together);
    EXPECT_OK(MPI_File_set_size(fh, 0));
    move_far(fh, 3 * TEBI - 1, 100000, together);
  }
  EXPECT_OK(MPI_File_close(&fh));
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  move_with("own.out", NULL);
  move_with("regions.out", "0:1M:beside,1024G:1024G:beside+beside,3072G:4K:beside+beside+beside");
  return end_test();
}
