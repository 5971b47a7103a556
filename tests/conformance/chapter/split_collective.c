/* MPI-4.1, section 14.4.5: split collective calls. The six pairs with both types of counts: bytes,
 * statuses, pointers that move at the begin; one pending pair per handle; the calls that are legal
 * between begin and end; ends that match their begins.
 *
 * RANKS: 1 2 4 7
 * VARIANTS: striped
 * ENV: SHIMA_LOG=error
 */
#include "mpi/expect.h"

enum { each = 50, explicit_offset = 0, individual = 1, shared = 2, pairs = 3 };

static MPI_Status status;

static void begin_write(int kind, int wide, MPI_File fh, const int* data, int n) {
  const MPI_Offset at = (MPI_Offset)here * each;
#if MPI_VERSION >= 4
  if (wide && kind == explicit_offset)
    EXPECT_OK(MPI_File_write_at_all_begin_c(fh, at, data, n, MPI_INT));
  if (wide && kind == individual) EXPECT_OK(MPI_File_write_all_begin_c(fh, data, n, MPI_INT));
  if (wide && kind == shared) EXPECT_OK(MPI_File_write_ordered_begin_c(fh, data, n, MPI_INT));
  if (wide) return;
#endif
  if (kind == explicit_offset) EXPECT_OK(MPI_File_write_at_all_begin(fh, at, data, n, MPI_INT));
  if (kind == individual) EXPECT_OK(MPI_File_write_all_begin(fh, data, n, MPI_INT));
  if (kind == shared) EXPECT_OK(MPI_File_write_ordered_begin(fh, data, n, MPI_INT));
}

static void begin_read(int kind, int wide, MPI_File fh, int* data, int n) {
  const MPI_Offset at = (MPI_Offset)here * each;
#if MPI_VERSION >= 4
  if (wide && kind == explicit_offset)
    EXPECT_OK(MPI_File_read_at_all_begin_c(fh, at, data, n, MPI_INT));
  if (wide && kind == individual) EXPECT_OK(MPI_File_read_all_begin_c(fh, data, n, MPI_INT));
  if (wide && kind == shared) EXPECT_OK(MPI_File_read_ordered_begin_c(fh, data, n, MPI_INT));
  if (wide) return;
#endif
  if (kind == explicit_offset) EXPECT_OK(MPI_File_read_at_all_begin(fh, at, data, n, MPI_INT));
  if (kind == individual) EXPECT_OK(MPI_File_read_all_begin(fh, data, n, MPI_INT));
  if (kind == shared) EXPECT_OK(MPI_File_read_ordered_begin(fh, data, n, MPI_INT));
}

static int end_write(int kind, MPI_File fh, const int* data) {
  if (kind == explicit_offset) return MPI_File_write_at_all_end(fh, data, &status);
  if (kind == individual) return MPI_File_write_all_end(fh, data, &status);
  return MPI_File_write_ordered_end(fh, data, &status);
}

static int end_read(int kind, MPI_File fh, int* data) {
  if (kind == explicit_offset) return MPI_File_read_at_all_end(fh, data, &status);
  if (kind == individual) return MPI_File_read_all_end(fh, data, &status);
  return MPI_File_read_ordered_end(fh, data, &status);
}

static MPI_File open_ints(const char* name) {
  MPI_File fh = open_fresh(name);
  view_native(fh, 0, MPI_INT, MPI_INT);
  return fh;
}

/* Each pair does the same as its blocking form; one rank has no data. */
static void pairs_move_data(int kind, int wide) {
  const int n = here == 1 ? 0 : each;
  int data[each], found[each];
  MPI_File fh = open_ints("split.out");
  for (int i = 0; i < each; ++i) data[i] = kind * 10000 + here * 100 + i, found[i] = -1;
  EXPECT_OK(MPI_File_seek(fh, here * each, MPI_SEEK_SET));
  begin_write(kind, wide, fh, data, n);
  EXPECT_EQ(position_of(fh), here * each + (kind == individual ? n : 0));
  EXPECT_OK(end_write(kind, fh, data));
  expect_items(&status, MPI_INT, n);
  sync_barrier_sync(fh);
  const int skipped = kind == shared && here > 1 ? 1 : 0; /* ordered leaves no gap for rank 1 */
  expect_stored("split.out", (here - skipped) * (long long)sizeof data, data,
                (size_t)n * sizeof(int));
  EXPECT_OK(MPI_File_seek(fh, here * each, MPI_SEEK_SET));
  EXPECT_OK(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET));
  begin_read(kind, wide, fh, found, n);
  EXPECT_OK(end_read(kind, fh, found));
  expect_items(&status, MPI_INT, n);
  for (int i = 0; i < each; ++i) EXPECT_EQ(found[i], i < n ? data[i] : -1);
  EXPECT_OK(MPI_File_close(&fh));
}

/* An end of another kind is an error, and so is an end without a begin. */
static void ends_fit_their_begins(void) {
  int data[each] = {0};
  MPI_File fh = open_ints("split.out");
  for (int kind = 0; kind < pairs; ++kind) {
    for (int other = 0; other < pairs; ++other) {
      EXPECT(end_write(other, fh, data) != MPI_SUCCESS);
      EXPECT(end_read(other, fh, data) != MPI_SUCCESS);
    }
    begin_write(kind, 0, fh, data, each);
    for (int other = 0; other < pairs; ++other) {
      if (other != kind) EXPECT(end_write(other, fh, data) != MPI_SUCCESS);
      EXPECT(end_read(other, fh, data) != MPI_SUCCESS);
    }
    EXPECT_OK(end_write(kind, fh, data));
    expect_items(&status, MPI_INT, each);
  }
  EXPECT_OK(MPI_File_close(&fh));
}

/* At most one pending on a handle, and no other collective access beside it. */
static void one_at_a_time(void) {
  int data[each] = {0}, found[each];
  MPI_Request request;
  MPI_File fh = open_ints("split.out");
  begin_write(individual, 0, fh, data, each);
  EXPECT(MPI_File_write_all_begin(fh, data, each, MPI_INT) != MPI_SUCCESS);
  EXPECT(MPI_File_read_at_all_begin(fh, 0, found, each, MPI_INT) != MPI_SUCCESS);
  EXPECT(MPI_File_write_all(fh, data, each, MPI_INT, &status) != MPI_SUCCESS);
  EXPECT(MPI_File_read_ordered(fh, found, each, MPI_INT, &status) != MPI_SUCCESS);
  EXPECT(MPI_File_iread_all(fh, found, each, MPI_INT, &request) != MPI_SUCCESS);
  EXPECT_OK(end_write(individual, fh, data));
  EXPECT_EQ(position_of(fh), each); /* only one of these calls has moved it */
  EXPECT_OK(MPI_File_write_all(fh, data, each, MPI_INT, &status));
  EXPECT_OK(MPI_File_close(&fh));
}

/* Independent access to other parts, queries and seeks are legal between begin and end. */
static void others_go_on_in_between(void) {
  int data[each], own = 777 + here, found = 0, amode;
  MPI_Request request;
  MPI_File fh = open_ints("split.out");
  const MPI_Offset beyond = (MPI_Offset)ranks * each + here;
  for (int i = 0; i < each; ++i) data[i] = here * each + i;
  begin_write(explicit_offset, 0, fh, data, each);
  EXPECT_OK(MPI_File_write_at(fh, beyond, &own, 1, MPI_INT, &status));
  EXPECT_OK(MPI_File_iread_at(fh, beyond, &found, 1, MPI_INT, &request));
  EXPECT_OK(MPI_Wait(&request, &status));
  EXPECT_EQ(found, own);
  EXPECT_OK(MPI_File_get_amode(fh, &amode));
  EXPECT(file_size_of(fh) > 0);
  EXPECT_OK(MPI_File_seek(fh, 5, MPI_SEEK_SET));
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &own, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_OK(end_write(explicit_offset, fh, data));
  expect_items(&status, MPI_INT, each);
  EXPECT_EQ(position_of(fh), 5);
  sync_barrier_sync(fh);
  expect_stored("split.out", here * (long long)sizeof data, data, sizeof data);
  EXPECT_OK(MPI_File_close(&fh));
}

/* Handles are independent: one pending access on each of several files, ended in another order. */
static void one_for_each_handle(void) {
  enum { files = 5 };
  MPI_File fhs[files];
  int data[files][each];
  char name[40];
  for (int f = 0; f < files; ++f) {
    snprintf(name, sizeof name, "many.%d.out", f / 2); /* also two handles of one file */
    fhs[f] = open_ints(name);
  }
  for (int f = 0; f < files; ++f) {
    for (int i = 0; i < each; ++i) data[f][i] = f * 1000 + i;
    EXPECT_OK(
        MPI_File_write_at_all_begin(fhs[f], (f % 2 * ranks + here) * each, data[f], each, MPI_INT));
  }
  for (int f = files - 1; f >= 0; --f) EXPECT_OK(end_write(explicit_offset, fhs[f], data[f]));
  for (int f = 0; f < files; ++f) {
    snprintf(name, sizeof name, "many.%d.out", f / 2);
    expect_stored(name, (f % 2 * ranks + here) * (long long)sizeof data[f], data[f],
                  sizeof data[f]);
    EXPECT_OK(MPI_File_close(&fhs[f]));
  }
}

/* The datatype may be freed after the begin; the end's status counts its items. */
static void datatypes_may_go(void) {
  short found[4 * each];
  MPI_Datatype type, kept;
  MPI_File fh = open_ints("split.out");
  MPI_Type_vector(2, 1, 2, MPI_SHORT, &type);
  MPI_Type_commit(&type);
  MPI_Type_dup(type, &kept);
  EXPECT_OK(MPI_File_set_size(fh, 4 * 7));
  memset(found, 0x11, sizeof found);
  EXPECT_OK(MPI_File_read_at_all_begin(fh, 0, found, each, type));
  MPI_Type_free(&type);
  EXPECT_OK(MPI_File_read_at_all_end(fh, found, &status));
  expect_items(&status, kept, 7);
  EXPECT_EQ(found[1], 0x1111);
  MPI_Type_free(&kept);
  EXPECT_OK(MPI_File_close(&fh));
}

/* An error of one rank reaches all ranks by the end, and the handle stays usable. */
static void errors_reach_all(void) {
  int data[each] = {0};
  MPI_File fh = open_ints("split.out");
  const int begun =
      MPI_File_write_at_all_begin(fh, here == ranks - 1 ? -1 : 0, data, each, MPI_INT);
  if (begun == MPI_SUCCESS) EXPECT_CLASS(MPI_File_write_at_all_end(fh, data, &status), MPI_ERR_ARG);
  begin_write(explicit_offset, 0, fh, data, each);
  EXPECT_OK(MPI_File_write_at_all_end(fh, data, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_close(&fh));
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  for (int kind = 0; kind < pairs; ++kind)
    for (int wide = 0; wide < 2; ++wide) pairs_move_data(kind, wide);
  ends_fit_their_begins();
  one_at_a_time();
  others_go_on_in_between();
  one_for_each_handle();
  datatypes_may_go();
  errors_reach_all();
  return end_test();
}
