/* MPI-4.1, section 14.4.4: the shared file pointer. One for all ranks of an open; accesses are
 * serialized, ordered ones by rank; seeking is collective.
 *
 * RANKS: 1 2 4 7
 * VARIANTS: striped
 * ENV: SHIMA_LOG=error
 */
#include "mpi/expect.h"

enum { each = 30, way_count = 4 };

static MPI_Status status;

static void write_by(int way, MPI_File fh, const int* data, int n) {
  MPI_Request request = MPI_REQUEST_NULL;
  switch (way) {
    case 0:
      EXPECT_OK(MPI_File_write_shared(fh, data, n, MPI_INT, &status));
      break;
    case 1:
      EXPECT_OK(MPI_File_iwrite_shared(fh, data, n, MPI_INT, &request));
      break;
#if MPI_VERSION >= 4
    case 2:
      EXPECT_OK(MPI_File_write_shared_c(fh, data, n, MPI_INT, &status));
      break;
    case 3:
      EXPECT_OK(MPI_File_iwrite_shared_c(fh, data, n, MPI_INT, &request));
      break;
#endif
    default:
      write_by(way - 2, fh, data, n);
      return;
  }
  if (way % 2) EXPECT_OK(MPI_Wait(&request, &status));
}

static void read_by(int way, MPI_File fh, int* data, int n) {
  MPI_Request request = MPI_REQUEST_NULL;
  switch (way) {
    case 0:
      EXPECT_OK(MPI_File_read_shared(fh, data, n, MPI_INT, &status));
      break;
    case 1:
      EXPECT_OK(MPI_File_iread_shared(fh, data, n, MPI_INT, &request));
      break;
#if MPI_VERSION >= 4
    case 2:
      EXPECT_OK(MPI_File_read_shared_c(fh, data, n, MPI_INT, &status));
      break;
    case 3:
      EXPECT_OK(MPI_File_iread_shared_c(fh, data, n, MPI_INT, &request));
      break;
#endif
    default:
      read_by(way - 2, fh, data, n);
      return;
  }
  if (way % 2) EXPECT_OK(MPI_Wait(&request, &status));
}

/* Every other int from byte 4 on: all ranks have one view, as the section requires. */
static void view_every_other(MPI_File fh) {
  MPI_Datatype type;
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type);
  MPI_Type_commit(&type);
  view_native(fh, 4, MPI_INT, type);
  MPI_Type_free(&type);
}

static void count_each_once(MPI_File fh, const int* seen, int all) {
  int total[8 * each];
  MPI_Allreduce(seen, total, all, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < all; ++i) EXPECT_EQ(total[i], 1);
  EXPECT_EQ(shared_position_of(fh), all);
}

/* Accesses are serialized: every record is in the file once, whole; likewise each is read once. */
static void accesses_take_turns(int way) {
  const int all = each * ranks;
  int record[2], seen[8 * each] = {0};
  MPI_File fh = open_fresh("shared.out");
  view_every_other(fh);
  for (int i = 0; i < each; i += 2) {
    record[0] = here * each + i;
    record[1] = here * each + i + 1;
    write_by(way, fh, record, 2);
    expect_items(&status, MPI_INT, 2);
  }
  sync_barrier_sync(fh);
  EXPECT_EQ(shared_position_of(fh), all);
  EXPECT_EQ(file_size_of(fh), 4 + 4 * (2 * all - 1));
  EXPECT_OK(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET));
  for (int i = 0; i < each; i += 2) {
    read_by(way, fh, record, 2);
    expect_items(&status, MPI_INT, 2);
    EXPECT(record[0] >= 0 && record[0] < all && record[1] == record[0] + 1);
    ++seen[record[0]], ++seen[record[1]];
  }
  count_each_once(fh, seen, all);
  EXPECT_EQ(position_of(fh), 0);
  EXPECT_OK(MPI_File_close(&fh));
}

/* The access that starts first has the first place, even if both are pending. */
static void starting_takes_the_place(void) {
  char name[40];
  int data[4] = {1, 2, 3, 4};
  MPI_Request requests[4];
  MPI_Status statuses[4];
  snprintf(name, sizeof name, "order.%d.out", here);
  MPI_File fh = open_self(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
  view_native(fh, 0, MPI_INT, MPI_INT);
  for (int i = 0; i < 4; ++i) {
    EXPECT_OK(MPI_File_iwrite_shared(fh, &data[i], 1, MPI_INT, &requests[i]));
    EXPECT_EQ(shared_position_of(fh), i + 1);
  }
  EXPECT_OK(MPI_Waitall(4, requests, statuses));
  EXPECT_OK(MPI_File_close(&fh));
  expect_stored(name, 0, data, sizeof data);
}

static int ints_of(int rank, int round) { return (rank + round) % 3 * 5; }

/* Ordered accesses follow each other by rank, without gaps, also with different counts and none. */
static void ordered_goes_by_rank(int way) {
  int data[10], found[10], expected = 0, before = 0;
  MPI_File fh = open_fresh("shared.out");
  view_every_other(fh);
  for (int round = 0; round < 4; ++round) {
    const int n = ints_of(here, round);
    for (int i = 0; i < n; ++i) data[i] = round * 10000 + here * 100 + i, found[i] = -1;
    before = expected;
    for (int r = 0; r < here; ++r) before += ints_of(r, round);
#if MPI_VERSION >= 4
    if (way) EXPECT_OK(MPI_File_write_ordered_c(fh, data, n, MPI_INT, &status));
#endif
    if (!way || MPI_VERSION < 4) EXPECT_OK(MPI_File_write_ordered(fh, data, n, MPI_INT, &status));
    expect_items(&status, MPI_INT, n);
    for (int r = 0; r < ranks; ++r) expected += ints_of(r, round);
    EXPECT_EQ(shared_position_of(fh), expected);
    EXPECT_OK(MPI_File_read_at(fh, before, found, n, MPI_INT, MPI_STATUS_IGNORE));
    for (int i = 0; i < n; ++i) EXPECT_EQ(found[i], data[i]);
    MPI_Barrier(MPI_COMM_WORLD); /* all ranks read the position before one of them moves it */
  }
  EXPECT_OK(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET));
  EXPECT_OK(MPI_File_read_ordered(fh, found, ints_of(here, 0), MPI_INT, &status));
  expect_items(&status, MPI_INT, ints_of(here, 0));
  for (int i = 0; i < ints_of(here, 0); ++i) EXPECT_EQ(found[i], here * 100 + i);
  EXPECT_OK(MPI_File_close(&fh));
}

/* Seeking is collective with equal arguments; positions before the view are errors. */
static void seeking_together(void) {
  MPI_File fh = open_fresh("shared.out");
  EXPECT_OK(MPI_File_set_size(fh, 4 + 8 * 10)); /* int 9 of the view is the last one */
  view_every_other(fh);
  EXPECT_OK(MPI_File_seek_shared(fh, 7, MPI_SEEK_SET));
  EXPECT_OK(MPI_File_seek_shared(fh, -3, MPI_SEEK_CUR));
  EXPECT_EQ(shared_position_of(fh), 4);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_OK(MPI_File_seek_shared(fh, -1, MPI_SEEK_END));
  EXPECT_EQ(shared_position_of(fh), 9);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_CLASS(MPI_File_seek_shared(fh, -10, MPI_SEEK_CUR), MPI_ERR_ARG);
  EXPECT_CLASS(MPI_File_seek_shared(fh, -11, MPI_SEEK_END), MPI_ERR_ARG);
  EXPECT_CLASS(MPI_File_seek_shared(fh, -1, MPI_SEEK_SET), MPI_ERR_ARG);
  if (ranks > 1) {
    EXPECT_CLASS(MPI_File_seek_shared(fh, here, MPI_SEEK_SET), MPI_ERR_NOT_SAME);
    EXPECT_CLASS(MPI_File_seek_shared(fh, 0, here ? MPI_SEEK_SET : MPI_SEEK_CUR), MPI_ERR_NOT_SAME);
  }
  EXPECT_EQ(shared_position_of(fh), 9);
  EXPECT_OK(MPI_File_close(&fh));
}

/* The pointer belongs to one collective open; other accesses do not change it; reads beyond the end
 * move it. */
static void whose_pointer_it_is(void) {
  int values[3] = {1, 2, 3};
  MPI_File fh = open_fresh("shared.out"), other = open_world("shared.out", MPI_MODE_RDONLY);
  view_native(fh, 0, MPI_INT, MPI_INT);
  view_native(other, 0, MPI_INT, MPI_INT);
  EXPECT_OK(MPI_File_write_at_all(fh, 3 * here, values, 3, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_write_all(fh, values, 3, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_EQ(shared_position_of(fh), 0);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_OK(MPI_File_read_ordered(fh, values, 2, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_EQ(shared_position_of(other), 0);
  EXPECT_OK(MPI_File_seek_shared(fh, 0, MPI_SEEK_END));
  EXPECT_OK(MPI_File_read_shared(fh, values, 3, MPI_INT, &status));
  expect_items(&status, MPI_INT, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(shared_position_of(fh), 6 * ranks);
  EXPECT_OK(MPI_File_close(&other));
  EXPECT_OK(MPI_File_close(&fh));
}

/* Sequential files use only this pointer, and it cannot be set. */
static void sequential_files(void) {
  int value = here, found = -1;
  MPI_Offset position;
  const int mode = MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE;
  MPI_File fh = open_world("sequential.out", MPI_MODE_CREATE | MPI_MODE_WRONLY | mode);
  EXPECT_OK(MPI_File_write_ordered(fh, &value, 1, MPI_INT, &status));
  MPI_File reader = open_world("sequential.out", MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL);
  EXPECT_OK(MPI_File_read_ordered(reader, &found, 1, MPI_INT, &status));
  EXPECT_EQ(found, here);
  EXPECT_OK(MPI_File_read_shared(reader, &found, 1, MPI_INT, &status));
  expect_items(&status, MPI_INT, 0);
  EXPECT(MPI_File_seek_shared(reader, 0, MPI_SEEK_SET) != MPI_SUCCESS);
  EXPECT(MPI_File_get_position_shared(reader, &position) != MPI_SUCCESS);
  EXPECT(MPI_File_write_shared(reader, &found, 1, MPI_INT, &status) != MPI_SUCCESS);
  EXPECT(MPI_File_read_shared(fh, &found, 1, MPI_INT, &status) != MPI_SUCCESS);
  EXPECT_OK(MPI_File_close(&reader));
  EXPECT_OK(MPI_File_close(&fh));
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  for (int way = 0; way < way_count; ++way) accesses_take_turns(way);
  starting_takes_the_place();
  for (int way = 0; way < 2; ++way) ordered_goes_by_rank(way);
  seeking_together();
  whose_pointer_it_is();
  sequential_files();
  return end_test();
}
