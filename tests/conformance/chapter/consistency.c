/* MPI-4.1, section 14.6: consistency and semantics. Which writes of its own and of others a rank
 * sees, in both modes and through the paths that the section names; nonblocking collective calls
 * beside other communication; file sizes.
 *
 * RANKS: 1 2 4
 * VARIANTS: striped
 * ENV: SHIMA_LOG=error
 */
#include "mpi/expect.h"

enum { ints = 1000 };

static int data[ints], found[ints];

static void fill(int value) {
  for (int i = 0; i < ints; ++i) data[i] = value, found[i] = -1;
}

static void expect_all(int value) {
  for (int i = 0; i < ints; ++i) EXPECT_EQ(found[i], value);
}

/* 14.6.1: in nonatomic mode a rank sees its own writes, by any kind of call on one handle. */
static void own_writes_are_seen(void) {
  MPI_Request request;
  MPI_Status status;
  const MPI_Offset at = here * (MPI_Offset)sizeof data;
  MPI_File fh = open_fresh("own.out");
  for (int way = 0; way < 4; ++way) {
    fill(100 * way + here);
    if (way == 0) EXPECT_OK(MPI_File_write_at(fh, at, data, ints, MPI_INT, &status));
    if (way == 1) EXPECT_OK(MPI_File_write_at_all(fh, at, data, ints, MPI_INT, &status));
    if (way == 2) EXPECT_OK(MPI_File_iwrite_at(fh, at, data, ints, MPI_INT, &request));
    if (way == 3) EXPECT_OK(MPI_File_iwrite_at_all(fh, at, data, ints, MPI_INT, &request));
    if (way >= 2) EXPECT_OK(MPI_Wait(&request, &status));
    EXPECT_OK(MPI_File_read_at(fh, at, found, ints, MPI_INT, &status));
    expect_all(100 * way + here);
  }
  EXPECT_OK(MPI_File_close(&fh));
}

/* 14.6.1: sync, barrier, sync shows one rank's writes to the others, on this handle and another. */
static void sync_shows_writes(void) {
  MPI_Status status;
  MPI_File fh = open_fresh("synced.out"), reader = open_self("synced.out", MPI_MODE_RDONLY);
  for (int writer = 0; writer < ranks; ++writer) {
    fill(writer + 1);
    if (here == writer) EXPECT_OK(MPI_File_write_at(fh, 0, data, ints, MPI_INT, &status));
    sync_barrier_sync(fh);
    EXPECT_OK(MPI_File_read_at_all(fh, 0, found, ints, MPI_INT, &status));
    expect_all(writer + 1);
    found[0] = -1;
    EXPECT_OK(MPI_File_sync(reader)); /* legal on a file open for reading */
    EXPECT_OK(MPI_File_read_at(reader, 0, found, ints, MPI_INT, &status));
    expect_all(writer + 1);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  EXPECT_OK(MPI_File_close(&reader));
  EXPECT_OK(MPI_File_close(&fh));
}

/* 14.6.1: closing and opening does the same. */
static void reopening_shows_writes(void) {
  MPI_Status status;
  for (int round = 0; round < 3; ++round) {
    MPI_File fh = open_fresh("reopened.out");
    fill(round * 10 + here);
    EXPECT_OK(MPI_File_write_ordered(fh, data, ints, MPI_INT, &status));
    EXPECT_OK(MPI_File_close(&fh));
    fh = open_world("reopened.out", MPI_MODE_RDONLY);
    const int other = (here + round + 1) % ranks;
    EXPECT_OK(
        MPI_File_read_at_all(fh, other * (MPI_Offset)sizeof data, found, ints, MPI_INT, &status));
    expect_all(round * 10 + other);
    EXPECT_OK(MPI_File_close(&fh));
  }
}

/* 14.6.1: in atomic mode overlapping writes leave the bytes of one of them, together or alone, and
 * a reader sees one of them whole. */
static void atomic_accesses_are_whole(int together, MPI_Datatype filetype) {
  int flag = -1;
  MPI_Status status;
  MPI_File fh = open_fresh("atomic.out");
  fill(99);
  view_native(fh, 0, MPI_INT, filetype);
  EXPECT_OK(MPI_File_write_at_all(fh, 0, data, ints, MPI_INT, &status));
  EXPECT_OK(MPI_File_get_atomicity(fh, &flag));
  EXPECT_EQ(flag, 0);
  EXPECT_OK(MPI_File_set_atomicity(fh, 1));
  EXPECT_OK(MPI_File_get_atomicity(fh, &flag));
  EXPECT(flag);
  sync_barrier_sync(fh);
  fill(here);
  for (int i = 0; i < 5; ++i) {
    EXPECT_OK((together ? MPI_File_write_at_all : MPI_File_write_at)(fh, 0, data, ints, MPI_INT,
                                                                     &status));
    EXPECT_OK(
        (together ? MPI_File_read_at_all : MPI_File_read_at)(fh, 0, found, ints, MPI_INT, &status));
    EXPECT(found[0] >= 0 && found[0] < ranks);
    expect_all(found[0]);
  }
  EXPECT_OK(MPI_File_set_atomicity(fh, 0));
  if (ranks > 1) EXPECT(MPI_File_set_atomicity(fh, here == 0) != MPI_SUCCESS);
  EXPECT_OK(MPI_File_close(&fh));
}

/* 14.6.1: atomic mode needs no sync: bytes written before a barrier are visible after it. */
static void atomic_mode_needs_no_sync(void) {
  int value = here, other = (here + 1) % ranks, got = -1;
  MPI_File fh = open_fresh("nosync.out");
  view_native(fh, 0, MPI_INT, MPI_INT);
  EXPECT_OK(MPI_File_set_atomicity(fh, 1));
  EXPECT_OK(MPI_File_write_at(fh, here, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_OK(MPI_File_read_at(fh, other, &got, 1, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_EQ(got, other);
  EXPECT_OK(MPI_File_close(&fh));
}

/* 14.6.4: nonblocking collective I/O makes progress beside other nonblocking collectives, in one
 * waitall; and 14.6.3: ranks that wait for a message do not block the file. */
static void progress_beside_communication(void) {
  enum { rounds = 8 };
  int sums[rounds], ones = 1, token = 0;
  MPI_Request requests[2 * rounds + 1];
  MPI_Status statuses[2 * rounds + 1];
  MPI_File fh = open_fresh("progress.out");
  const int next = (here + 1) % ranks, previous = (here + ranks - 1) % ranks;
  fill(here + 5);
  for (int i = 0; i < rounds; ++i) {
    const MPI_Offset at = (i * ranks + here) * (MPI_Offset)sizeof data;
    EXPECT_OK(MPI_File_iwrite_at_all(fh, at, data, ints, MPI_INT, &requests[2 * i]));
    MPI_Iallreduce(&ones, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2 * i + 1]);
  }
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[2 * rounds]);
  MPI_Sendrecv(&here, 1, MPI_INT, next, 1, &token, 1, MPI_INT, previous, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  EXPECT_EQ(token, previous);
  EXPECT_OK(MPI_Waitall(2 * rounds + 1, requests, statuses));
  for (int i = 0; i < rounds; ++i) EXPECT_EQ(sums[i], ranks);
  for (int i = 0; i < rounds; ++i)
    expect_stored("progress.out", (i * ranks + here) * (long long)sizeof data, data, sizeof data);
  EXPECT_OK(MPI_File_close(&fh));
}

/* 14.6.4: collective calls on several files match file by file, in each file's own order. */
static void files_have_their_own_order(void) {
  MPI_Request requests[4];
  MPI_Status statuses[4];
  MPI_File files[2] = {open_fresh("first.out"), open_fresh("second.out")};
  int values[4];
  for (int i = 0; i < 4; ++i) {
    /* Ranks use the files in different order. */
    const int file = (i + here) % 2, nth = i / 2;
    values[i] = 100 * file + 10 * nth + here;
    EXPECT_OK(
        MPI_File_iwrite_all(files[file], &values[i], here % 2 == 0 || nth, MPI_INT, &requests[i]));
  }
  EXPECT_OK(MPI_Waitall(4, requests, statuses));
  for (int file = 0; file < 2; ++file) {
    EXPECT_EQ(position_of(files[file]), (here % 2 ? 1 : 2) * (int)sizeof(int));
    EXPECT_OK(MPI_File_close(&files[file]));
  }
}

/* 14.6.8: sizes are set by the last byte written, not by empty writes or reads; set_size and
 * preallocate are ordered like writes. */
static void sizes(void) {
  char byte = 'b';
  MPI_File fh = open_fresh("sizes.out");
  EXPECT_OK(MPI_File_write_at_all(fh, 1000000, &byte, 0, MPI_CHAR, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_read_at_all(fh, 1000000, &byte, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  EXPECT_EQ(file_size_of(fh), 0);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_OK(MPI_File_write_at(fh, 10 * (here + 1), &byte, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  sync_barrier_sync(fh);
  EXPECT_EQ(file_size_of(fh), 10 * ranks + 1);
  EXPECT_OK(MPI_File_set_size(fh, 5));
  sync_barrier_sync(fh);
  EXPECT_EQ(file_size_of(fh), 5);
  EXPECT_OK(MPI_File_preallocate(fh, 50));
  sync_barrier_sync(fh);
  EXPECT_EQ(file_size_of(fh), 50);
  EXPECT_OK(MPI_File_write_at_all(fh, 0, &byte, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  EXPECT_EQ(file_size_of(fh), 50);
  EXPECT_OK(MPI_File_close(&fh));
}

/* 14.6.7: offsets and sizes have more than 32 bits. */
static void large_offsets(void) {
  const MPI_Offset far = ((MPI_Offset)1 << 40) + here;
  MPI_Offset place = -1;
  char byte = (char)('A' + here), back = 0;
  MPI_File fh = open_fresh("large.out");
  EXPECT_OK(MPI_File_seek(fh, far, MPI_SEEK_SET));
  EXPECT_OK(MPI_File_write_all(fh, &byte, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  EXPECT_EQ(position_of(fh), far + 1);
  EXPECT_OK(MPI_File_get_byte_offset(fh, far, &place));
  EXPECT_EQ(place, far);
  EXPECT_OK(MPI_File_read_at_all(fh, far, &back, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  EXPECT_EQ(back, byte);
  sync_barrier_sync(fh);
  EXPECT_EQ(file_size_of(fh), ((MPI_Offset)1 << 40) + ranks);
  EXPECT_OK(MPI_File_close(&fh));
}

int main(int argc, char** argv) {
  MPI_Datatype spread;
  start_test(&argc, &argv, 100);
  MPI_Type_create_resized(MPI_INT, 0, 3 * sizeof(int), &spread);
  MPI_Type_commit(&spread);
  own_writes_are_seen();
  sync_shows_writes();
  reopening_shows_writes();
  for (int together = 0; together < 2; ++together) {
    atomic_accesses_are_whole(together, MPI_INT);
    atomic_accesses_are_whole(together, spread);
  }
  atomic_mode_needs_no_sync();
  progress_beside_communication();
  files_have_their_own_order();
  sizes();
  large_offsets();
  MPI_Type_free(&spread);
  return end_test();
}
