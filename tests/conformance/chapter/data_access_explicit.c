/* MPI-4.1, sections 14.4.1 and 14.4.2: data access with explicit offsets. Every call of the table,
 * with both types of counts: the right bytes at the right place, a correct status, both pointers
 * unchanged; memory with gaps and bounds; reads that reach the end of the file; ranks without data.
 *
 * RANKS: 1 2 4 7
 * VARIANTS: striped
 * ENV: SHIMA_LOG=error
 */
#include "mpi/expect.h"

enum { each = 40, way_count = 8 };

static MPI_Status status;

/* One kind of access; nonblocking ones are waited for. */
static void write_by(int way, MPI_File fh, MPI_Offset at, const void* data, int n,
                     MPI_Datatype type) {
  MPI_Request request = MPI_REQUEST_NULL;
  switch (way) {
    case 0:
      EXPECT_OK(MPI_File_write_at(fh, at, data, n, type, &status));
      break;
    case 1:
      EXPECT_OK(MPI_File_write_at_all(fh, at, data, n, type, &status));
      break;
    case 2:
      EXPECT_OK(MPI_File_iwrite_at(fh, at, data, n, type, &request));
      break;
    case 3:
      EXPECT_OK(MPI_File_iwrite_at_all(fh, at, data, n, type, &request));
      break;
#if MPI_VERSION >= 4
    case 4:
      EXPECT_OK(MPI_File_write_at_c(fh, at, data, n, type, &status));
      break;
    case 5:
      EXPECT_OK(MPI_File_write_at_all_c(fh, at, data, n, type, &status));
      break;
    case 6:
      EXPECT_OK(MPI_File_iwrite_at_c(fh, at, data, n, type, &request));
      break;
    case 7:
      EXPECT_OK(MPI_File_iwrite_at_all_c(fh, at, data, n, type, &request));
      break;
#endif
    default:
      write_by(way - 4, fh, at, data, n, type);
      return;
  }
  if (way % 4 >= 2) EXPECT_OK(MPI_Wait(&request, &status));
}

static void read_by(int way, MPI_File fh, MPI_Offset at, void* data, int n, MPI_Datatype type) {
  MPI_Request request = MPI_REQUEST_NULL;
  switch (way) {
    case 0:
      EXPECT_OK(MPI_File_read_at(fh, at, data, n, type, &status));
      break;
    case 1:
      EXPECT_OK(MPI_File_read_at_all(fh, at, data, n, type, &status));
      break;
    case 2:
      EXPECT_OK(MPI_File_iread_at(fh, at, data, n, type, &request));
      break;
    case 3:
      EXPECT_OK(MPI_File_iread_at_all(fh, at, data, n, type, &request));
      break;
#if MPI_VERSION >= 4
    case 4:
      EXPECT_OK(MPI_File_read_at_c(fh, at, data, n, type, &status));
      break;
    case 5:
      EXPECT_OK(MPI_File_read_at_all_c(fh, at, data, n, type, &status));
      break;
    case 6:
      EXPECT_OK(MPI_File_iread_at_c(fh, at, data, n, type, &request));
      break;
    case 7:
      EXPECT_OK(MPI_File_iread_at_all_c(fh, at, data, n, type, &request));
      break;
#endif
    default:
      read_by(way - 4, fh, at, data, n, type);
      return;
  }
  if (way % 4 >= 2) EXPECT_OK(MPI_Wait(&request, &status));
}

/* Offsets count etypes of the view; no pointer moves; the status has the item count, uncancelled.
 */
static void offsets_are_of_the_view(MPI_File fh, int way) {
  const int other = (here + 1) % ranks;
  int data[each], found[each], flag = 1;
  view_native(fh, 8, MPI_INT, MPI_INT);
  EXPECT_OK(MPI_File_seek(fh, 3, MPI_SEEK_SET));
  for (int i = 0; i < each; ++i) data[i] = way * 10000 + here * 100 + i, found[i] = -1;
  write_by(way, fh, here * each, data, each, MPI_INT);
  expect_items(&status, MPI_INT, each);
  expect_items(&status, MPI_BYTE, each * (int)sizeof(int));
  MPI_Test_cancelled(&status, &flag);
  EXPECT_EQ(flag, 0);
  sync_barrier_sync(fh);
  expect_stored("explicit.out", 8 + here * (long long)sizeof data, data, sizeof data);
  read_by(way, fh, other * each, found, each, MPI_INT);
  expect_items(&status, MPI_INT, each);
  for (int i = 0; i < each; ++i) EXPECT_EQ(found[i], way * 10000 + other * 100 + i);
  EXPECT_EQ(position_of(fh), 3);
  EXPECT_EQ(shared_position_of(fh), 0);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* A type in memory that has gaps, starts before its address and ends before its last element. */
static MPI_Datatype gappy(void) {
  const int places[3] = {-2, 1, 5};
  MPI_Datatype pieces, type;
  MPI_Type_create_indexed_block(3, 1, places, MPI_SHORT, &pieces);
  MPI_Type_create_resized(pieces, -3 * (MPI_Aint)sizeof(short), 12 * sizeof(short), &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&pieces);
  return type;
}

/* The datatype selects the bytes of memory; the others are neither written nor changed. */
static void memory_may_have_gaps(MPI_File fh, int way) {
  enum { items = 4, room = 60 };
  short memory[room], found[room], packed[3 * items];
  MPI_Datatype type = gappy();
  view_native(fh, 0, MPI_SHORT, MPI_SHORT);
  for (int i = 0; i < room; ++i) memory[i] = (short)(here * 100 + i), found[i] = -1;
  write_by(way, fh, here * 3 * items, memory + 6, items, type);
  expect_items(&status, type, items);
  read_by(way, fh, here * 3 * items, packed, 3 * items, MPI_SHORT);
  read_by(way, fh, here * 3 * items, found + 6, items, type);
  expect_items(&status, type, items);
  for (int i = 0, n = 0; i < room; ++i) {
    const int in_item = i - 6 + 3,
              is_data = in_item >= 0 && in_item / 12 < items &&
                        (in_item % 12 == 1 || in_item % 12 == 4 || in_item % 12 == 8);
    EXPECT_EQ(found[i], is_data ? memory[i] : -1);
    if (is_data) EXPECT_EQ(packed[n++], memory[i]);
  }
  MPI_Type_free(&type);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* A read stops at the end of the file: the status has the count, the rest of the buffer stays. */
static void reads_stop_at_the_end(MPI_File fh, int way) {
  struct {
    double first;
    int second, third;
  } items[4];
  int parts[2] = {1, 2}, elements = -1, found[8];
  MPI_Aint places[2] = {0, 8};
  MPI_Datatype types[2] = {MPI_DOUBLE, MPI_INT}, type;
  MPI_Type_create_struct(2, parts, places, types, &type);
  MPI_Type_commit(&type);
  view_native(fh, 0, MPI_BYTE, MPI_BYTE);
  EXPECT_OK(MPI_File_set_size(fh, 16 + 12));
  memset(items, 0x33, sizeof items);
  read_by(way, fh, 0, items, 4, type);
  expect_items(&status, type, MPI_UNDEFINED);
  MPI_Get_elements(&status, type, &elements);
  EXPECT_EQ(elements, 5);
  EXPECT_EQ(items[1].third, 0x33333333);
  read_by(way, fh, 20, found, 8, MPI_INT);
  expect_items(&status, MPI_INT, 2);
  read_by(way, fh, 28, found, 8, MPI_INT);
  expect_items(&status, MPI_INT, 0);
  read_by(way, fh, 1000000000000, found, 8, MPI_INT);
  expect_items(&status, MPI_INT, 0);
  EXPECT_EQ(file_size_of(fh), 28);
  MPI_Type_free(&type);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Some ranks have no data, in each form of an empty access, which changes no size. */
static void some_have_nothing(MPI_File fh, int way) {
  int value = 100 + here;
  MPI_Datatype nothing;
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  MPI_Type_commit(&nothing);
  view_native(fh, 0, MPI_INT, MPI_INT);
  EXPECT_OK(MPI_File_set_size(fh, 0));
  if (here % 2) {
    write_by(way, fh, here % 4 == 1 ? 1000 : 0, NULL, 0, MPI_INT);
    expect_items(&status, MPI_INT, 0);
  } else {
    write_by(way, fh, here, &value, 1, MPI_INT);
    expect_items(&status, MPI_INT, 1);
  }
  write_by(way, fh, 1000000, &value, 17, nothing);
  expect_items(&status, MPI_BYTE, 0);
  sync_barrier_sync(fh);
  EXPECT_EQ(file_size_of(fh), ((ranks - 1) / 2 * 2 + 1) * (int)sizeof(int));
  read_by(way, fh, here / 2 * 2, &value, here % 2 ? 0 : 1, MPI_INT);
  EXPECT_EQ(value, 100 + here);
  MPI_Type_free(&nothing);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Offsets beyond 32 bits; MPI_BOTTOM; MPI_STATUS_IGNORE. */
static void far_away_and_from_bottom(MPI_File fh) {
  const MPI_Offset far = 5000000000;
  int value = 4711 + here, found = 0, one = 1;
  MPI_Aint address;
  MPI_Datatype absolute;
  MPI_Get_address(&value, &address);
  MPI_Type_create_hindexed(1, &one, &address, MPI_INT, &absolute);
  MPI_Type_commit(&absolute);
  view_native(fh, far, MPI_INT, MPI_INT);
  EXPECT_OK(MPI_File_write_at_all(fh, far + here, MPI_BOTTOM, 1, absolute, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_read_at_all(fh, far + here, &found, 1, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_EQ(found, value);
  expect_stored("explicit.out", 5 * far + here * 4LL, &value, sizeof value);
  MPI_Type_free(&absolute);
}

/* Negative offsets, and modes that forbid the call. */
static void erroneous_accesses(void) {
  int value = 1;
  MPI_File fh = open_world("explicit.out", MPI_MODE_RDONLY);
  EXPECT_CLASS(MPI_File_read_at(fh, -1, &value, 1, MPI_INT, &status), MPI_ERR_ARG);
  EXPECT_CLASS(MPI_File_write_at(fh, 0, &value, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
  EXPECT_CLASS(MPI_File_write_at_all(fh, 0, &value, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
  EXPECT_OK(MPI_File_close(&fh));
  fh = open_world("explicit.out", MPI_MODE_WRONLY);
  EXPECT(MPI_File_read_at(fh, 0, &value, 1, MPI_INT, &status) != MPI_SUCCESS);
  EXPECT(MPI_File_read_at_all(fh, 0, &value, 1, MPI_INT, &status) != MPI_SUCCESS);
  EXPECT_OK(MPI_File_close(&fh));
  fh = open_world("explicit.out", MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL);
  EXPECT_CLASS(MPI_File_read_at(fh, 0, &value, 1, MPI_INT, &status), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT_CLASS(MPI_File_read_at_all(fh, 0, &value, 1, MPI_INT, &status),
               MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT_OK(MPI_File_close(&fh));
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  MPI_File fh = open_fresh("explicit.out");
  for (int way = 0; way < way_count; ++way) {
    offsets_are_of_the_view(fh, way);
    memory_may_have_gaps(fh, way);
    reads_stop_at_the_end(fh, way);
    some_have_nothing(fh, way);
  }
  far_away_and_from_bottom(fh);
  EXPECT_OK(MPI_File_close(&fh));
  erroneous_accesses();
  return end_test();
}
