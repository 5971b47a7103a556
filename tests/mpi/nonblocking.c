/* Nonblocking calls: the right bytes and counts by every way to wait, errors at the file's handler,
 * many requests at once, and collective requests beside messages that others wait for.
 *
 * RANKS: 1 2 4 7
 * VARIANTS: striped
 * ENV: SHIMA_LOG=error
 */
#include <string.h>
#include <unistd.h>

#include "expect.h"

enum { pieces = 16, piece_ints = 500 };

static MPI_File fh;

static int value_of(int rank, int piece, int i) { return rank * 1000003 + piece * 1009 + i; }

static MPI_Offset place_of(int rank, int piece) {
  return ((MPI_Offset)piece * ranks + rank) * piece_ints;
}

static void open_file(void) {
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "nonblocking.out",
                          MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                          &fh));
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
}

static void expect_count(MPI_Status* status) {
  int count = -1;
  MPI_Get_elements(status, MPI_BYTE, &count);
  EXPECT_EQ(count, piece_ints * (int)sizeof(int));
}

/* way 0: Waitall, 1: Wait, 2: Test, 3: Waitany, 4: Waitsome, 5: Testall */
static void complete(MPI_Request* requests, int way) {
  MPI_Status statuses[pieces];
  int done = 0, indices[pieces], index, flag = 0;
  switch (way) {
    case 0:
      EXPECT_OK(MPI_Waitall(pieces, requests, statuses));
      for (int p = 0; p < pieces; ++p) expect_count(&statuses[p]);
      break;
    case 1:
      for (int p = pieces - 1; p >= 0; --p) {
        EXPECT_OK(MPI_Wait(&requests[p], &statuses[p]));
        expect_count(&statuses[p]);
      }
      break;
    case 2:
      for (int p = 0; p < pieces; ++p) {
        for (flag = 0; !flag;) EXPECT_OK(MPI_Test(&requests[p], &flag, &statuses[p]));
        expect_count(&statuses[p]);
      }
      break;
    case 3:
      for (int p = 0; p < pieces; ++p) {
        EXPECT_OK(MPI_Waitany(pieces, requests, &index, &statuses[0]));
        EXPECT(index >= 0 && index < pieces);
        expect_count(&statuses[0]);
      }
      break;
    case 4:
      for (int all = 0; all < pieces; all += done) {
        EXPECT_OK(MPI_Waitsome(pieces, requests, &done, indices, statuses));
        for (int i = 0; i < done; ++i) expect_count(&statuses[i]);
      }
      break;
    default:
      while (!flag) EXPECT_OK(MPI_Testall(pieces, requests, &flag, statuses));
      for (int p = 0; p < pieces; ++p) expect_count(&statuses[p]);
  }
  for (int p = 0; p < pieces; ++p) EXPECT(requests[p] == MPI_REQUEST_NULL);
}

static void write_and_read(int together, int way) {
  static int out[pieces][piece_ints], in[pieces][piece_ints];
  MPI_Request requests[pieces];
  open_file();
  for (int p = 0; p < pieces; ++p) {
    for (int i = 0; i < piece_ints; ++i) out[p][i] = value_of(here, p, i), in[p][i] = -1;
    EXPECT_OK((together ? MPI_File_iwrite_at_all : MPI_File_iwrite_at)(
        fh, place_of(here, p), out[p], piece_ints, MPI_INT, &requests[p]));
  }
  complete(requests, way);
  MPI_Barrier(MPI_COMM_WORLD);
  int other = (here + 1) % ranks;
  for (int p = 0; p < pieces; ++p)
    EXPECT_OK((together ? MPI_File_iread_at_all : MPI_File_iread_at)(
        fh, place_of(other, p), in[p], piece_ints, MPI_INT, &requests[p]));
  complete(requests, way);
  for (int p = 0; p < pieces; ++p)
    for (int i = 0; i < piece_ints; ++i) EXPECT_EQ(in[p][i], value_of(other, p, i));
  EXPECT_OK(MPI_File_close(&fh));
}

/* Small writes are done at once, large ones by a thread; here they alternate, in a file that may
 * not be read, too. */
static void test_mixed_sizes(int amode) {
  enum { small = 100, large = 300000, sizes = 2 * pieces, most = pieces * (small + large) };
  static unsigned char out[most], in[most];
  MPI_Request requests[sizes];
  MPI_Status statuses[sizes];
  const MPI_Offset begin = (MPI_Offset)here * most;
  for (int i = 0; i < most; ++i) out[i] = (unsigned char)value_of(here, i / 7, i);
  EXPECT_OK(
      MPI_File_open(MPI_COMM_WORLD, "mixed.out", MPI_MODE_CREATE | amode, MPI_INFO_NULL, &fh));
  for (int p = 0, at = 0, len; p < sizes; ++p, at += len) {
    len = p % 2 == 0 ? large : small;
    EXPECT_OK(MPI_File_iwrite_at(fh, begin + at, out + at, len, MPI_BYTE, &requests[p]));
  }
  EXPECT_OK(MPI_Waitall(sizes, requests, statuses));
  MPI_Request request;
  for (int at = 0; at < most; at += 50021) {
    out[at] ^= 0xff;
    EXPECT_OK(MPI_File_iwrite_at(fh, begin + at, out + at, 1, MPI_BYTE, &request));
    EXPECT_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  EXPECT_OK(MPI_File_close(&fh));
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "mixed.out", MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE,
                          MPI_INFO_NULL, &fh));
  EXPECT_OK(MPI_File_read_at(fh, begin, in, most, MPI_BYTE, MPI_STATUS_IGNORE));
  EXPECT(memcmp(in, out, most) == 0);
  EXPECT_OK(MPI_File_close(&fh));
}

/* The pointer has moved when the call returns; a collective in between is executed in order. */
static void test_pointer_and_order(void) {
  int value = here, back = -1, all[8];
  MPI_Offset position;
  MPI_Request requests[2];
  open_file();
  EXPECT_OK(MPI_File_seek(fh, here, MPI_SEEK_SET));
  EXPECT_OK(MPI_File_iwrite_all(fh, &value, 1, MPI_INT, &requests[0]));
  EXPECT_OK(MPI_File_get_position(fh, &position));
  EXPECT_EQ(position, here + 1);
  EXPECT_OK(MPI_File_read_at_all(fh, 0, all, ranks, MPI_INT, MPI_STATUS_IGNORE));
  for (int r = 0; r < ranks; ++r) EXPECT_EQ(all[r], r);
  EXPECT_OK(MPI_File_iread_at(fh, here, &back, 1, MPI_INT, &requests[1]));
  MPI_Status both[2];
  EXPECT_OK(MPI_Waitall(2, requests, both));
  EXPECT_EQ(back, here);
  EXPECT_OK(MPI_File_close(&fh));
}

/* Rank 0 waits for a message from a rank that has not yet begun the collective. */
static void test_beside_messages(void) {
  int value = here, token = 0;
  MPI_Request request;
  open_file();
  if (here == 0) {
    EXPECT_OK(MPI_File_iwrite_at_all(fh, 0, &value, 1, MPI_INT, &request));
    for (int r = 1; r < ranks; ++r)
      MPI_Recv(&token, 1, MPI_INT, r, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Send(&token, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    EXPECT_OK(MPI_File_iwrite_at_all(fh, here, &value, 1, MPI_INT, &request));
  }
  EXPECT_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_close(&fh));
}

static int calls, called_class;

static void count_call(MPI_File* file, int* code, ...) {
  (void)file;
  ++calls;
  MPI_Error_class(*code, &called_class);
}

static void test_errors(void) {
  int value = 1;
  MPI_Request request;
  MPI_Errhandler mine;
  open_file();
  EXPECT_CLASS(MPI_File_iwrite_at(fh, -1, &value, 1, MPI_INT, &request), MPI_ERR_ARG);
  EXPECT(request == MPI_REQUEST_NULL);
  /* An error of one rank is returned to it at once, and to the others when they wait. */
  int code = MPI_File_iwrite_at_all(fh, here == 0 ? -1 : here, &value, 1, MPI_INT, &request);
  if (here == 0) {
    EXPECT_CLASS(code, MPI_ERR_ARG);
  } else {
    MPI_File_create_errhandler(count_call, &mine);
    EXPECT_OK(MPI_File_set_errhandler(fh, mine));
    EXPECT_OK(code);
    EXPECT_CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(called_class, MPI_ERR_ARG);
    MPI_Errhandler_free(&mine);
  }
  EXPECT_OK(MPI_File_close(&fh));
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  for (int way = 0; way < 6; ++way)
    for (int together = 0; together < 2; ++together) write_and_read(together, way);
  test_mixed_sizes(MPI_MODE_RDWR);
  test_mixed_sizes(MPI_MODE_WRONLY);
  test_pointer_and_order();
  test_beside_messages();
  test_errors();
  return end_test();
}
