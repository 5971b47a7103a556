// RANKS: 2 4
// VARIANTS: onespace
// An I/O error on one rank is an error on every rank, and only real failures are errors.
//
// SHIMA_FAULT makes the system calls of one rank fail or transfer fewer bytes; it is set on that
// rank alone, for one open. Each case runs on every data path: all ranks must return the expected
// class, none may hang, and bytes reported as written must be in the file.
#include "mpi_check.h"

enum { piece_bytes = 16 << 10, piece_count = 48, bytes = piece_bytes * piece_count };
enum { do_write, do_read, do_sync };

static const char* const path = "faulty.bin";
static unsigned char data[bytes];

typedef struct {
  const char* fault;
  int operation;
  int expected;
} Case;

static const Case cases[] = {
    {"write:ENOSPC:after=65536", do_write, MPI_ERR_NO_SPACE},
    {"write:ENOSPC", do_write, MPI_ERR_NO_SPACE},
    {"write:EDQUOT:after=1", do_write, MPI_ERR_QUOTA},
    {"write:EIO", do_write, MPI_ERR_IO},
    {"write:EIO:after=400000", do_write, MPI_ERR_IO},
    {"write:short", do_write, MPI_SUCCESS},
    {"write:short:after=70001", do_write, MPI_SUCCESS},
    {"read:EIO", do_read, MPI_ERR_IO},
    {"read:EIO:after=65536", do_read, MPI_ERR_IO},
    {"read:short", do_read, MPI_SUCCESS},
    {"sync:EIO", do_sync, MPI_ERR_IO},
};

// Data paths. The rank with the fault must do I/O on the path: the first rank is always an agent;
// if every rank does its own I/O, the last rank is used.
typedef struct {
  const char *key, *value;
} Way;

static const Way ways[] = {{"shima_reach", "single_copy"},  // in one space; otherwise automatic
                           {"shima_reach", "pull"},
                           {"shima_reach", "pack"},
                           {"shima_reach", "message"},
                           {"collective_buffering", "false"}};

static int faulty_rank(const Way* way) {
  return strcmp(way->key, "collective_buffering") == 0 ? ranks - 1 : 0;
}

static long long file_offset(int rank, int i) {
  return ((long long)(i / piece_bytes) * ranks + rank) * piece_bytes + i % piece_bytes;
}

static void fill(void) {
  for (int i = 0; i < bytes; ++i) data[i] = value_at(file_offset(here, i));
}

static MPI_File open_on(const Way* way, const char* fault) {
  MPI_File file;
  MPI_Datatype pieces;
  MPI_Info info = info_with(way->key, way->value);
  MPI_Info_set(info, "cb_buffer_size", "131072");
  if (fault != NULL && here == faulty_rank(way)) setenv("SHIMA_FAULT", fault, 1);
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file));
  unsetenv("SHIMA_FAULT");
  MPI_Type_vector(piece_count, piece_bytes, ranks * piece_bytes, MPI_BYTE, &pieces);
  MPI_Type_commit(&pieces);
  CHECK(MPI_File_set_view(file, (MPI_Offset)here * piece_bytes, MPI_BYTE, pieces, "native",
                          MPI_INFO_NULL));
  MPI_Type_free(&pieces);
  MPI_Info_free(&info);
  return file;
}

static int act(MPI_File file, int operation) {
  if (operation == do_sync) return MPI_File_sync(file);
  if (operation == do_write)
    return MPI_File_write_at_all(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
  memset(data, 0, bytes);
  return MPI_File_read_at_all(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void check_data(void) {
  for (int i = 0; i < bytes; ++i) REQUIRE(data[i] == value_at(file_offset(here, i)));
}

// All bytes of all ranks are in the file.
static void check_file(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  long long size = 0;
  unsigned char* found = contents_of(path, &size);
  REQUIRE(size == (long long)bytes * ranks);
  for (long long i = 0; i < size; ++i) REQUIRE(found[i] == value_at(i));
  free(found);
}

static void prepare(const Way* way, int operation) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (here == 0) unlink(path);
  MPI_Barrier(MPI_COMM_WORLD);
  fill();
  if (operation == do_write) return;
  MPI_File file = open_on(way, NULL);
  CHECK(act(file, do_write));
  CHECK(MPI_File_close(&file));
}

static void run(const Way* way, const Case* c) {
  prepare(way, c->operation);
  MPI_File file = open_on(way, c->fault);
  const int found = class_of(act(file, c->operation));
  if (found != c->expected) {
    fprintf(stderr, "rank %d: %s=%s, %s: class %d instead of %d\n", here, way->key, way->value,
            c->fault, found, c->expected);
    give_up("wrong outcome", __LINE__);
  }
  if (found == MPI_SUCCESS && c->operation == do_read) check_data();
  if (found == MPI_SUCCESS && c->operation == do_write) check_file();
  if (found != MPI_SUCCESS && c->operation == do_write) {  // the error persists
    fill();
    REQUIRE(class_of(act(file, c->operation)) == c->expected);
  }
  CHECK(MPI_File_close(&file));
}

static void check_own_bytes(void) {
  long long size = 0;
  unsigned char* found = contents_of(path, &size);
  REQUIRE(size > file_offset(here, bytes - 1));
  for (int i = 0; i < bytes; ++i)
    REQUIRE(found[file_offset(here, i)] == value_at(file_offset(here, i)));
  free(found);
}

// An independent write fails on its own rank only, and only if no other rank could write its bytes.
static void independent_calls(const Way* way) {
  const int combining = strcmp(way->value, "disable") != 0;
  prepare(way, do_write);
  MPI_File file = open_on(way, "write:ENOSPC:after=65536");
  const int class = class_of(MPI_File_write_at(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  if (here != faulty_rank(way))
    REQUIRE(class == MPI_SUCCESS);
  else
    REQUIRE(class == MPI_ERR_NO_SPACE || (combining && class == MPI_SUCCESS));
  if (class == MPI_SUCCESS) check_own_bytes();
  CHECK(MPI_File_close(&file));
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 90);
  for (size_t w = 0; w < sizeof ways / sizeof *ways; ++w)
    for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) run(&ways[w], &cases[c]);
  independent_calls(&(Way){"shima_combine", "disable"});
  for (int again = 0; again < 10; ++again) independent_calls(&(Way){"shima_combine", "automatic"});
  return end_test();
}
