/* MPI-4.1, section 14.4.3: individual file pointers. Every call of the table moves the pointer of
 * its own rank and handle by the requested etypes, at once; seeking follows the three rules and
 * refuses to leave the view.
 *
 * RANKS: 1 2 4 7
 * VARIANTS: striped
 * ENV: SHIMA_LOG=error
 */
#include "mpi/expect.h"

enum { each = 12, way_count = 8 };

static MPI_Status status;

/* Starts an access; the pointer must have moved when this returns, even if the access is pending.
 */
static MPI_Request write_by(int way, MPI_File fh, const void* data, int n, MPI_Datatype type) {
  MPI_Request request = MPI_REQUEST_NULL;
  switch (way) {
    case 0:
      EXPECT_OK(MPI_File_write(fh, data, n, type, &status));
      break;
    case 1:
      EXPECT_OK(MPI_File_write_all(fh, data, n, type, &status));
      break;
    case 2:
      EXPECT_OK(MPI_File_iwrite(fh, data, n, type, &request));
      break;
    case 3:
      EXPECT_OK(MPI_File_iwrite_all(fh, data, n, type, &request));
      break;
#if MPI_VERSION >= 4
    case 4:
      EXPECT_OK(MPI_File_write_c(fh, data, n, type, &status));
      break;
    case 5:
      EXPECT_OK(MPI_File_write_all_c(fh, data, n, type, &status));
      break;
    case 6:
      EXPECT_OK(MPI_File_iwrite_c(fh, data, n, type, &request));
      break;
    case 7:
      EXPECT_OK(MPI_File_iwrite_all_c(fh, data, n, type, &request));
      break;
#endif
    default:
      return write_by(way - 4, fh, data, n, type);
  }
  return request;
}

static MPI_Request read_by(int way, MPI_File fh, void* data, int n, MPI_Datatype type) {
  MPI_Request request = MPI_REQUEST_NULL;
  switch (way) {
    case 0:
      EXPECT_OK(MPI_File_read(fh, data, n, type, &status));
      break;
    case 1:
      EXPECT_OK(MPI_File_read_all(fh, data, n, type, &status));
      break;
    case 2:
      EXPECT_OK(MPI_File_iread(fh, data, n, type, &request));
      break;
    case 3:
      EXPECT_OK(MPI_File_iread_all(fh, data, n, type, &request));
      break;
#if MPI_VERSION >= 4
    case 4:
      EXPECT_OK(MPI_File_read_c(fh, data, n, type, &status));
      break;
    case 5:
      EXPECT_OK(MPI_File_read_all_c(fh, data, n, type, &status));
      break;
    case 6:
      EXPECT_OK(MPI_File_iread_c(fh, data, n, type, &request));
      break;
    case 7:
      EXPECT_OK(MPI_File_iread_all_c(fh, data, n, type, &request));
      break;
#endif
    default:
      return read_by(way - 4, fh, data, n, type);
  }
  return request;
}

static void finish(MPI_Request request) {
  if (request != MPI_REQUEST_NULL) EXPECT_OK(MPI_Wait(&request, &status));
}

/* Pairs of shorts, every other one: an etype of two elements, a view with holes. */
static void view_of_pairs(MPI_File fh, MPI_Offset at) {
  MPI_Datatype pair, type;
  MPI_Type_contiguous(2, MPI_SHORT, &pair);
  MPI_Type_commit(&pair);
  MPI_Type_create_resized(pair, 0, 4 * sizeof(short), &type);
  MPI_Type_commit(&type);
  view_native(fh, at, pair, type);
  MPI_Type_free(&pair);
  MPI_Type_free(&type);
}

/* new pointer = old + elements(datatype) * count / elements(etype), for each rank separately. */
static void accesses_move_the_pointer(int way) {
  const int other = (here + 1) % ranks;
  short data[2 * each], found[2 * each];
  MPI_File fh = open_fresh("individual.out");
  view_of_pairs(fh, 6);
  for (int i = 0; i < 2 * each; ++i) data[i] = (short)(here * 100 + i), found[i] = -1;
  EXPECT_OK(MPI_File_seek(fh, here * each, MPI_SEEK_SET));
  MPI_Request first = write_by(way, fh, data, each, MPI_SHORT);
  EXPECT_EQ(position_of(fh), here * each + each / 2);
  MPI_Request second = write_by(way, fh, data + each, each, MPI_SHORT);
  EXPECT_EQ(position_of(fh), (here + 1) * each);
  finish(first);
  finish(second);
  expect_items(&status, MPI_SHORT, each);
  EXPECT_EQ(shared_position_of(fh), 0);
  sync_barrier_sync(fh);
  for (int i = 0; i < 2 * each; ++i)
    expect_stored("individual.out", 6 + 8 * (here * each + i / 2) + i % 2 * 2, &data[i], 2);
  EXPECT_OK(MPI_File_seek(fh, other * each, MPI_SEEK_SET));
  finish(read_by(way, fh, found, 2 * each, MPI_SHORT));
  EXPECT_EQ(position_of(fh), (other + 1) * each);
  for (int i = 0; i < 2 * each; ++i) EXPECT_EQ(found[i], other * 100 + i);
  EXPECT_OK(MPI_File_close(&fh));
}

/* An empty access does not move the pointer; a short read moves it by the requested count. */
static void pointers_follow_the_request(int way) {
  int found[10];
  MPI_File fh = open_fresh("individual.out");
  EXPECT_OK(MPI_File_set_size(fh, 5 * sizeof(int)));
  view_native(fh, 0, MPI_INT, MPI_INT);
  finish(read_by(way, fh, NULL, 0, MPI_INT));
  EXPECT_EQ(position_of(fh), 0);
  finish(read_by(way, fh, found, 3, MPI_INT));
  expect_items(&status, MPI_INT, 3);
  finish(read_by(way, fh, found, 10, MPI_INT));
  expect_items(&status, MPI_INT, 2);
  EXPECT_EQ(position_of(fh), 13);
  finish(read_by(way, fh, found, 1, MPI_INT));
  expect_items(&status, MPI_INT, 0);
  EXPECT_EQ(position_of(fh), 14);
  EXPECT_EQ(file_size_of(fh), 5 * (int)sizeof(int));
  EXPECT_OK(MPI_File_close(&fh));
}

/* MPI_SEEK_SET, _CUR and _END, beyond the end too; to a negative offset it is an error that leaves
 * the pointer where it was. */
static void seeking(void) {
  MPI_Offset place = -1;
  MPI_File fh = open_fresh("individual.out");
  EXPECT_OK(MPI_File_set_size(fh, 6 + 8 * 10 + 1)); /* ten pairs and a byte of the eleventh */
  view_of_pairs(fh, 6);
  EXPECT_OK(MPI_File_seek(fh, here, MPI_SEEK_SET));
  EXPECT_OK(MPI_File_seek(fh, 5, MPI_SEEK_CUR));
  EXPECT_EQ(position_of(fh), here + 5);
  EXPECT_OK(MPI_File_seek(fh, -5, MPI_SEEK_CUR));
  EXPECT_EQ(position_of(fh), here);
  EXPECT_OK(MPI_File_seek(fh, 0, MPI_SEEK_END));
  EXPECT_EQ(position_of(fh), 11);
  EXPECT_OK(MPI_File_seek(fh, -11, MPI_SEEK_END));
  EXPECT_EQ(position_of(fh), 0);
  EXPECT_OK(MPI_File_seek(fh, 1000, MPI_SEEK_END));
  EXPECT_EQ(position_of(fh), 1011);
  EXPECT_OK(MPI_File_get_byte_offset(fh, position_of(fh), &place));
  EXPECT_EQ(place, 6 + 8 * 1011);
  EXPECT_CLASS(MPI_File_seek(fh, -1, MPI_SEEK_SET), MPI_ERR_ARG);
  EXPECT_CLASS(MPI_File_seek(fh, -1012, MPI_SEEK_CUR), MPI_ERR_ARG);
  EXPECT_CLASS(MPI_File_seek(fh, -12, MPI_SEEK_END), MPI_ERR_ARG);
  EXPECT(MPI_File_seek(fh, 0, MPI_SEEK_SET + MPI_SEEK_CUR + MPI_SEEK_END + 1) != MPI_SUCCESS);
  EXPECT_EQ(position_of(fh), 1011);
  EXPECT_EQ(file_size_of(fh), 6 + 8 * 10 + 1);
  EXPECT_OK(MPI_File_close(&fh));
}

/* A write at a byte offset extends the file to its end, also across a hole. */
static void writing_beyond_the_end(void) {
  char name[40], byte = 'x';
  snprintf(name, sizeof name, "beyond.%d.out", here);
  MPI_File fh = open_self(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
  EXPECT_OK(MPI_File_seek(fh, 99, MPI_SEEK_END));
  EXPECT_OK(MPI_File_write(fh, &byte, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  EXPECT_EQ(file_size_of(fh), 100);
  EXPECT_OK(MPI_File_close(&fh));
  fh = open_self(name, MPI_MODE_WRONLY | MPI_MODE_APPEND);
  EXPECT_OK(MPI_File_write(fh, "end", 3, MPI_CHAR, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_seek(fh, 0, MPI_SEEK_SET)); /* append mode sets only the first position */
  EXPECT_OK(MPI_File_write(fh, "start", 5, MPI_CHAR, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_close(&fh));
  expect_stored(name, 99, "xend", 4);
  expect_stored(name, 0, "start", 5);
}

/* Explicit offsets and the shared pointer leave the individual one alone. */
static void other_accesses_leave_it(void) {
  int value = here;
  MPI_Request request;
  MPI_File fh = open_fresh("individual.out");
  view_native(fh, 0, MPI_INT, MPI_INT);
  EXPECT_OK(MPI_File_seek(fh, 9, MPI_SEEK_SET));
  EXPECT_OK(MPI_File_write_at_all(fh, here, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_read_shared(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_iread_at(fh, 0, &value, 1, MPI_INT, &request));
  EXPECT_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_read_ordered(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_set_size(fh, 4));
  EXPECT_OK(MPI_File_preallocate(fh, 40));
  EXPECT_EQ(position_of(fh), 9);
  EXPECT_OK(MPI_File_close(&fh));
}

/* The calls of this section are errors on sequential files. */
static void not_for_sequential_files(void) {
  int value = 0;
  MPI_Offset position;
  MPI_Request request;
  MPI_File fh = open_world("individual.out", MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL);
  EXPECT(MPI_File_read(fh, &value, 1, MPI_INT, &status) != MPI_SUCCESS);
  EXPECT(MPI_File_read_all(fh, &value, 1, MPI_INT, &status) != MPI_SUCCESS);
  EXPECT(MPI_File_iread(fh, &value, 1, MPI_INT, &request) != MPI_SUCCESS);
  EXPECT(MPI_File_iread_all(fh, &value, 1, MPI_INT, &request) != MPI_SUCCESS);
  EXPECT(MPI_File_seek(fh, 0, MPI_SEEK_SET) != MPI_SUCCESS);
  EXPECT(MPI_File_get_position(fh, &position) != MPI_SUCCESS);
  EXPECT_OK(MPI_File_close(&fh));
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  for (int way = 0; way < way_count; ++way) {
    accesses_move_the_pointer(way);
    pointers_follow_the_request(way);
  }
  seeking();
  writing_beyond_the_end();
  other_accesses_leave_it();
  not_for_sequential_files();
  return end_test();
}
