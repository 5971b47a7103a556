// RANKS: none
// (compiled by nfs_like.py) Accesses to a file on nfs_like_fs.c, where a rank sees another's bytes
// only after the writer has synced or closed and the reader has opened:
// nfs_like FILE SAME_FILE_ON_SERVER [own|atomic].
//
// Every rank keeps a model of the file and writes its pieces, which share pages with other ranks'
// pieces. After MPI_File_sync, or close and open, it must find all of the model, although its
// client's cache has older bytes. No rank writes the last piece of each stripe; bytes that another
// program writes there must stay. "own" adds accesses of a rank to its own bytes without a sync,
// and atomic mode; "atomic" is atomic mode alone.
#include <stdbool.h>

#include "mpi/expect.h"

enum { piece_bytes = 1000, stripes = 60, most_ranks = 8, most_bytes = 2 << 20 };

static const char *path, *server_path;
static MPI_File fh;
static unsigned char model[most_bytes], mine[most_bytes];
static long long model_bytes;

static long long stripe_bytes(void) { return (long long)piece_bytes * (ranks + 1); }
static unsigned char value_of(int round, long long at) { return value_at(at * 31 + round); }

static void view_all(void) {
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
}

static void view_pieces(void) {
  MPI_Datatype piece, pieces;
  MPI_Type_contiguous(piece_bytes, MPI_BYTE, &piece);
  MPI_Type_create_resized(piece, 0, (MPI_Aint)stripe_bytes(), &pieces);
  MPI_Type_commit(&pieces);
  EXPECT_OK(MPI_File_set_view(fh, (MPI_Offset)here * piece_bytes, MPI_BYTE, pieces, "native",
                              MPI_INFO_NULL));
  MPI_Type_free(&piece);
  MPI_Type_free(&pieces);
}

// Piece `column` of each stripe, in the model or, contiguously, in `data`.
static void set_pieces(int column, int round, unsigned char* data) {
  for (int i = 0; i < stripes * piece_bytes; ++i) {
    const long long at = i / piece_bytes * stripe_bytes() + column * piece_bytes + i % piece_bytes;
    *(data != NULL ? &data[i] : &model[at]) = value_of(round, at);
    if (data == NULL && at >= model_bytes) model_bytes = at + 1;
  }
}

static void new_round(int round) {
  for (int r = 0; r < ranks; ++r) set_pieces(r, round, NULL);
  set_pieces(here, round, mine);
}

static void open_file(void) {
  EXPECT_OK(
      MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh));
}

static void reopen(void) {
  EXPECT_OK(MPI_File_close(&fh));
  open_file();
}

static void sync_all(void) {
  EXPECT_OK(MPI_File_sync(fh));
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_OK(MPI_File_sync(fh));
}

// A launcher may lose what its ranks print just before MPI_Abort, so it goes to a file as well.
static void expect_same(long long found, long long expected, const char* what, long long at) {
  const char* report = getenv("NFS_LIKE_REPORT");
  if (found == expected) return;
  FILE* files[] = {stderr, report != NULL ? fopen(report, "a") : NULL};
  for (int i = 0; i < 2; ++i) {
    if (files[i] == NULL) continue;
    fprintf(files[i], "rank %d: %s at %lld: %lld, not %lld\n", here, what, at, found, expected);
    fflush(files[i]);
  }
  give_up("not what was written", __LINE__);
}

static void expect_model(const unsigned char* found, const char* what) {
  for (long long i = 0; i < model_bytes; ++i) expect_same(found[i], model[i], what, i);
}

static void read_all(const char* what, bool together) {
  static unsigned char found[most_bytes];
  MPI_Status status;
  int count = 0;
  memset(found, 0, sizeof found);
  EXPECT_OK((together ? MPI_File_read_at_all : MPI_File_read_at)(fh, 0, found, most_bytes, MPI_BYTE,
                                                                 &status));
  MPI_Get_count(&status, MPI_BYTE, &count);
  expect_same(count, model_bytes, "bytes read", 0);
  expect_model(found, what);
  MPI_Barrier(MPI_COMM_WORLD);
}

// Every rank finds the whole model, by independent and collective reads.
static void check(const char* what) {
  MPI_Offset size = 0;
  view_all();
  EXPECT_OK(MPI_File_get_size(fh, &size));
  expect_same(size, model_bytes, "the size", 0);
  read_all(what, false);
  read_all(what, true);
}

static void write_by(const char* way) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int count = stripes * piece_bytes;
  MPI_Status* const ignore = MPI_STATUS_IGNORE;
  view_pieces();
  if (strcmp(way, "together") == 0)
    EXPECT_OK(MPI_File_write_at_all(fh, 0, mine, count, MPI_BYTE, ignore));
  if (strcmp(way, "alone") == 0) EXPECT_OK(MPI_File_write_at(fh, 0, mine, count, MPI_BYTE, ignore));
  if (strcmp(way, "later") == 0)
    EXPECT_OK(MPI_File_iwrite_at(fh, 0, mine, count, MPI_BYTE, &request));
  if (strcmp(way, "later together") == 0)
    EXPECT_OK(MPI_File_iwrite_at_all(fh, 0, mine, count, MPI_BYTE, &request));
  EXPECT_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void interleaved(const char* way, int round) {
  new_round(round);
  write_by(way);
  sync_all();
  check(way);
  new_round(round + 1);
  write_by(way);
  reopen();
  check(way);
}

// Another program writes the pieces that no rank writes; every client caches older bytes of them.
static void neighbours(void) {
  const int round = 50;
  if (here == 0) {
    const int fd = open(path, O_WRONLY);
    set_pieces(ranks, round, mine);
    for (int i = 0; i < stripes; ++i)
      REQUIRE(pwrite(fd, mine + i * piece_bytes, piece_bytes,
                     i * stripe_bytes() + ranks * piece_bytes) == piece_bytes);
    REQUIRE(close(fd) == 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  set_pieces(ranks, round, NULL);
  new_round(round + 1);
  write_by("together");
  sync_all();
  check("neighbours");
}

// One piece per rank, in rank order and in any order.
static void shared_pointer(void) {
  const long long end = model_bytes;
  static unsigned char found[2 * piece_bytes * most_ranks];
  int seen[most_ranks] = {0};
  view_all();
  EXPECT_OK(MPI_File_seek_shared(fh, end, MPI_SEEK_SET));
  memset(mine, 'A' + here, piece_bytes);
  EXPECT_OK(MPI_File_write_ordered(fh, mine, piece_bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_write_shared(fh, mine, piece_bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  sync_all();
  EXPECT_OK(MPI_File_read_at(fh, end, found, (int)sizeof found, MPI_BYTE, MPI_STATUS_IGNORE));
  memcpy(model + end, found, sizeof found);
  for (int i = 0; i < 2 * ranks * piece_bytes; ++i) {
    if (i < ranks * piece_bytes) expect_same(found[i], 'A' + i / piece_bytes, "a letter", i);
    expect_same(found[i], found[i / piece_bytes * piece_bytes], "a letter of a piece", i);
    REQUIRE(found[i] >= 'A' && found[i] < 'A' + ranks);
    ++seen[found[i] - 'A'];
  }
  for (int r = 0; r < ranks; ++r) expect_same(seen[r], 2 * piece_bytes, "letters of a rank", r);
  model_bytes += 2 * ranks * piece_bytes;
  check("shared pointer");
}

// One size for all ranks; bytes beyond it read as zeros after the file grows again.
static void sizes(void) {
  const long long before = model_bytes, cut = before / 2 + 77;
  new_round(60);
  write_by("alone");
  sync_all();
  EXPECT_OK(MPI_File_set_size(fh, cut));
  model_bytes = cut;
  check("cut");
  EXPECT_OK(MPI_File_set_size(fh, before));
  memset(model + cut, 0, (size_t)(before - cut));
  model_bytes = before;
  check("grown");
  EXPECT_OK(MPI_File_preallocate(fh, before + 10000));
  memset(model + before, 0, 10000);
  model_bytes = before + 10000;
  check("preallocated");
}

// In atomic mode a read that follows a write finds it, in whichever subfile.
static void atomic_mode(void) {
  enum { bytes = 300000 };
  view_all();
  EXPECT_OK(MPI_File_set_atomicity(fh, 1));
  for (int round = 0; round < 2 * ranks; ++round) {
    const int writer = round % ranks;
    const long long len = bytes / 2 + round * 1000;
    for (long long i = 0; i < len; ++i) model[i] = value_of(200 + round, i);
    if (len > model_bytes) model_bytes = len;
    if (here == writer)
      EXPECT_OK(MPI_File_write_at(fh, 0, model, (int)len, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    read_all("atomic mode", round / ranks);
  }
  EXPECT_OK(MPI_File_set_atomicity(fh, 0));
  sync_all();
  check("after atomic mode");
}

static void expect_own(const char* what, bool together) {
  static unsigned char found[stripes * piece_bytes];
  memset(found, 0, sizeof found);
  EXPECT_OK((together ? MPI_File_read_at_all : MPI_File_read_at)(fh, 0, found, (int)sizeof found,
                                                                 MPI_BYTE, MPI_STATUS_IGNORE));
  if (memcmp(found, mine, sizeof found) != 0) give_up(what, __LINE__);
}

// A rank's calls take effect in program order, whichever rank performs them (MPI-4.1, 14.6.1).
static void own_bytes(void) {
  static const char* const ways[] = {"together", "alone", "later together", "later"};
  for (int i = 0; i < 16; ++i) {
    new_round(100 + 2 * i);
    write_by(ways[i % 4]);
    expect_own(ways[i % 4], i / 4 % 2 == 0);
    new_round(101 + 2 * i);  // over bytes whose write may be pending
    write_by(ways[(i + i / 4) % 4]);
    expect_own("written twice", i / 4 % 2 == 1);
    sync_all();
    check("own bytes");
  }
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  path = argv[1], server_path = argv[2];
  open_file();
  if (argc > 3 && strcmp(argv[3], "atomic") == 0) {
    atomic_mode();
    EXPECT_OK(MPI_File_close(&fh));
    return end_test();
  }
  interleaved("together", 1);
  interleaved("alone", 3);
  interleaved("later", 5);
  interleaved("later together", 7);
  neighbours();
  if (argc > 3) own_bytes();
  shared_pointer();
  sizes();
  if (argc > 3) atomic_mode();
  EXPECT_OK(MPI_File_close(&fh));
  long long size = 0;
  unsigned char* found = contents_of(server_path, &size);
  expect_same(size, model_bytes, "the size", 0);
  expect_model(found, "on the server");
  free(found);
  return end_test();
}
