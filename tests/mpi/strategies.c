/* Every value of the hint shima_collective: the bytes in the file, what a read returns, and the
 * hint in effect. Ranks own interleaved pieces, so that each strategy has bytes to move.
 *
 * RANKS: 1 4
 * VARIANTS: striped
 * ENV: SHIMA_LOG=error
 */
#include "expect.h"

enum { pieces = 60, piece_ints = 700 };

static const char* const strategies[] = {"auto", "disk_directed", "two_phase", "subgroup",
                                         "independent"};

static int word_of(int owner, int i) { return (owner + 1) * 1000000 + i; }

static MPI_File open_by(const char* strategy, const char* name) {
  MPI_Info info;
  MPI_File fh;
  MPI_Info_create(&info);
  MPI_Info_set(info, "shima_collective", strategy);
  MPI_Info_set(info, "cb_buffer_size", "65536");
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &fh));
  MPI_Info_free(&info);
  return fh;
}

static void expect_strategy(MPI_File fh, const char* expected) {
  MPI_Info info;
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int found = 0;
  EXPECT_OK(MPI_File_get_info(fh, &info));
  MPI_Info_get(info, "shima_collective", MPI_MAX_INFO_VAL, value, &found);
  MPI_Info_free(&info);
  EXPECT(found && strcmp(value, expected) == 0);
}

static void expect_file(const char* name) {
  int piece[piece_ints];
  for (int i = 0; i < pieces; i++)
    for (int r = 0; r < ranks; r++) {
      const long long at = (long long)(i * ranks + r) * (long long)sizeof piece;
      EXPECT_EQ(stored_read(name, piece, sizeof piece, at), sizeof piece);
      for (int k = 0; k < piece_ints; k++) EXPECT_EQ(piece[k], word_of(r, i * piece_ints + k));
    }
}

static void write_and_read_by(const char* strategy) {
  static int mine[pieces * piece_ints], theirs[pieces * piece_ints];
  const int count = pieces * piece_ints, neighbour = (here + 1) % ranks;
  char name[64];
  MPI_Datatype type;
  MPI_Status status;
  snprintf(name, sizeof name, "strategy.%s.out", strategy);
  MPI_File fh = open_by(strategy, name);
  expect_strategy(fh, strategy);
  MPI_Type_vector(pieces, piece_ints, piece_ints * ranks, MPI_INT, &type);
  MPI_Type_commit(&type);
  const MPI_Offset piece_bytes = piece_ints * (MPI_Offset)sizeof(int);
  view_native(fh, here * piece_bytes, MPI_INT, type);
  for (int i = 0; i < count; i++) mine[i] = word_of(here, i);
  EXPECT_OK(MPI_File_write_all(fh, mine, count, MPI_INT, &status));
  expect_items(&status, MPI_INT, count);
  sync_barrier_sync(fh);
  view_native(fh, neighbour * piece_bytes, MPI_INT, type);
  EXPECT_OK(MPI_File_read_all(fh, theirs, count, MPI_INT, &status));
  expect_items(&status, MPI_INT, count);
  for (int i = 0; i < count; i++) EXPECT_EQ(theirs[i], word_of(neighbour, i));
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Type_free(&type);
  if (here == 0) expect_file(name);
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++)
    write_and_read_by(strategies[i]);
  MPI_File fh = open_by("sometimes", "strategy.auto.out");  // not a value: changes nothing
  expect_strategy(fh, "auto");
  EXPECT_OK(MPI_File_close(&fh));
  return end_test();
}
