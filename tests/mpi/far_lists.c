/* Lists of irregular pieces below and beyond 2 and 4 GiB in a sparse file, by collective calls of
 * each strategy: what a rank reads, its own pieces and another's, and the zeros around the pieces.
 *
 * RANKS: 1 4
 * VARIANTS: striped
 */
#include "expect.h"

enum { pieces = 80, longest = 3000, room = 2 * longest };

#define PITCH ((MPI_Aint)100 << 20)

static int len_of(int rank, int i) { return 1 + (rank * 977 + i * 1409) % longest; }
/* At least a byte before and behind each piece belongs to no other. */
static MPI_Aint place_of(int rank, int i) { return i * PITCH + rank * room + 7 + i * 37 % longest; }

static int fill(int rank, unsigned char* bytes) {
  int count = 0;
  for (int i = 0; i < pieces; ++i)
    for (int j = 0; j < len_of(rank, i); ++j) bytes[count++] = value_at(place_of(rank, i) + j);
  return count;
}

static void view_pieces_of(MPI_File fh, int rank) {
  int lens[pieces];
  MPI_Aint places[pieces];
  MPI_Datatype type;
  for (int i = 0; i < pieces; ++i) {
    lens[i] = len_of(rank, i);
    places[i] = place_of(rank, i);
  }
  MPI_Type_create_hindexed(pieces, lens, places, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  view_native(fh, 0, MPI_BYTE, type);
  MPI_Type_free(&type);
}

static void expect_pieces(const char* name, int rank) {
  unsigned char found[longest + 2];
  for (int i = 0; i < pieces; ++i) {
    const int len = len_of(rank, i);
    memset(found, 0, sizeof found);
    EXPECT(stored_read(name, found, len + 2, place_of(rank, i) - 1) > len);
    EXPECT_EQ(found[0], 0);
    for (int j = 0; j < len; ++j) EXPECT_EQ(found[1 + j], value_at(place_of(rank, i) + j));
    EXPECT_EQ(found[len + 1], 0);
  }
}

static void move_by(const char* strategy) {
  static unsigned char mine[pieces * longest], found[pieces * longest];
  const int next = (here + 1) % ranks;
  char name[64];
  MPI_File fh;
  MPI_Info info;
  MPI_Status status;
  snprintf(name, sizeof name, "far.%s.out", strategy);
  MPI_Info_create(&info);
  MPI_Info_set(info, "shima_collective", strategy);
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &fh));
  MPI_Info_free(&info);
  view_pieces_of(fh, here);
  int count = fill(here, mine);
  EXPECT_OK(MPI_File_write_all(fh, mine, count, MPI_BYTE, &status));
  expect_items(&status, MPI_BYTE, count);
  sync_barrier_sync(fh);
  for (int turn = 0; turn < 2; ++turn) {
    const int owner = turn == 0 ? here : next;
    view_pieces_of(fh, owner);
    count = fill(owner, mine);
    memset(found, 0, sizeof found);
    EXPECT_OK(MPI_File_read_all(fh, found, count, MPI_BYTE, &status));
    expect_items(&status, MPI_BYTE, count);
    EXPECT_EQ(memcmp(found, mine, (size_t)count), 0);
  }
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Barrier(MPI_COMM_WORLD);
  if (here != 0) return;
  for (int rank = 0; rank < ranks; ++rank) expect_pieces(name, rank);
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  static const char* const strategies[] = {"auto", "disk_directed", "two_phase", "independent"};
  for (int i = 0; i < 4; ++i) move_by(strategies[i]);
  return end_test();
}
