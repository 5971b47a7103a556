// RANKS: none
// (compiled by full_disk.sh) Fills the file system of the current directory by every kind of call.
// Every rank must get MPI_ERR_NO_SPACE, and bytes that an earlier call reported as written must be
// in the file.
#include "mpi_check.h"

enum { piece_bytes = 4096, piece_count = 64, bytes = piece_bytes * piece_count, most_calls = 1000 };

static unsigned char data[bytes];

static MPI_File open_with(const char* key, const char* value) {
  MPI_File file;
  MPI_Datatype piece, pieces;
  MPI_Info info = info_with(key, value);
  CHECK(MPI_File_open(MPI_COMM_WORLD, "full.bin", MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file));
  MPI_Info_free(&info);
  MPI_Type_contiguous(piece_bytes, MPI_BYTE, &piece);
  MPI_Type_create_resized(piece, 0, (MPI_Aint)ranks * piece_bytes, &pieces);
  MPI_Type_commit(&pieces);
  MPI_Type_free(&piece);
  CHECK(MPI_File_set_view(file, (MPI_Offset)here * piece_bytes, MPI_BYTE, pieces, "native",
                          MPI_INFO_NULL));
  MPI_Type_free(&pieces);
  return file;
}

static unsigned char value_of(int rank, int call) {
  return (unsigned char)(1 + rank + 16 * (call % 8));
}

// Returns how many calls succeeded before the one that failed.
static int fill_disk(MPI_File file) {
  for (int call = 0; call < most_calls; ++call) {
    memset(data, value_of(here, call), bytes);
    const int code = MPI_File_write_at_all(file, (MPI_Offset)call * bytes, data, bytes, MPI_BYTE,
                                           MPI_STATUS_IGNORE);
    int worst = 0, class = class_of(code);
    MPI_Allreduce(&class, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    REQUIRE(class == worst);
    if (class == MPI_SUCCESS) continue;
    REQUIRE(class == MPI_ERR_NO_SPACE);
    return call;
  }
  give_up("the disk does not fill", __LINE__);
  return 0;
}

static void check_written(int calls) {
  long long size = 0;
  unsigned char* found = contents_of("full.bin", &size);
  const long long per_call = (long long)bytes * ranks;
  REQUIRE(size >= calls * per_call);
  for (long long i = 0; i < calls * per_call; ++i)
    REQUIRE(found[i] == value_of((int)(i / piece_bytes % ranks), (int)(i / per_call)));
  free(found);
}

static void run(const char* key, const char* value) {
  MPI_File file = open_with(key, value);
  const int calls = fill_disk(file);
  REQUIRE(calls > 0);
  CHECK(MPI_File_close(&file));
  if (here == 0) check_written(calls);
  MPI_Barrier(MPI_COMM_WORLD);
  if (here == 0) unlink("full.bin");
  MPI_Barrier(MPI_COMM_WORLD);
}

// Many small pieces with gaps, each rank in its own part of the file.
static void fill_with_gaps(void) {
  enum { small = 8, distance = 64, count = 1024, part = 8 << 20, most = part / (count * distance) };
  MPI_File file;
  MPI_Datatype piece, pieces;
  int calls = 0, code = MPI_SUCCESS;
  CHECK(MPI_File_open(MPI_COMM_WORLD, "full.bin", MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL,
                      &file));
  MPI_Type_contiguous(small, MPI_BYTE, &piece);
  MPI_Type_create_resized(piece, 0, distance, &pieces);
  MPI_Type_commit(&pieces);
  CHECK(
      MPI_File_set_view(file, (MPI_Offset)here * part, MPI_BYTE, pieces, "native", MPI_INFO_NULL));
  while (code == MPI_SUCCESS && calls < most) {
    memset(data, value_of(here, calls), count * small);
    code = MPI_File_write_at(file, (MPI_Offset)calls * count * small, data, count * small, MPI_BYTE,
                             MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS) ++calls;
  }
  REQUIRE(class_of(code) == MPI_ERR_NO_SPACE);
  MPI_Type_free(&piece);
  MPI_Type_free(&pieces);
  CHECK(MPI_File_close(&file));
  long long size = 0;
  unsigned char* found = contents_of("full.bin", &size);
  for (long long i = 0; i < (long long)calls * count; ++i)
    for (int k = 0; k < distance; ++k) {
      const long long at = (long long)here * part + i * distance + k;
      const int expected = k < small ? value_of(here, (int)(i / count)) : 0;
      REQUIRE(k < small ? at < size && found[at] == expected : at >= size || found[at] == 0);
    }
  free(found);
  MPI_Barrier(MPI_COMM_WORLD);
  if (here == 0) unlink("full.bin");
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 60);
  run("shima_reach", "pull");
  run("shima_reach", "pack");
  run("romio_cb_write", "disable");
  fill_with_gaps();
  return end_test();
}
