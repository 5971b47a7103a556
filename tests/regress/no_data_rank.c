// RANKS: 1 2 4 7
// VARIANTS: striped
// Collective calls in which some ranks, or all, have no bytes to move.
//
// Such ranks take part in every step but are never agents: no rank may wait for them, and they must
// not wait. Cases: count 0 with a null buffer, an empty datatype, and an empty view.
#include "mpi_check.h"

enum { piece_bytes = 3000, piece_count = 40, bytes = piece_bytes * piece_count };

typedef struct {
  int who;      // bit mask: ranks with data
  int strided;  // interleaved pieces of all ranks, or one block each
  int empty;    // the form of an empty access
} Case;

static int has_data(const Case* c, int rank) { return c->who >> rank & 1; }

static long long file_offset(const Case* c, int rank, int i) {
  if (!c->strided) return (long long)rank * bytes + i;
  return ((long long)(i / piece_bytes) * ranks + rank) * piece_bytes + i % piece_bytes;
}

static MPI_Datatype filetype_of(const Case* c) {
  MPI_Datatype type;
  if (!has_data(c, here) && c->empty == 2)
    MPI_Type_indexed(0, NULL, NULL, MPI_BYTE, &type);
  else if (c->strided)
    MPI_Type_vector(piece_count, piece_bytes, ranks * piece_bytes, MPI_BYTE, &type);
  else
    MPI_Type_contiguous(bytes, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  return type;
}

static MPI_File open_with_view(const Case* c) {
  MPI_File file;
  MPI_Datatype type = filetype_of(c);
  CHECK(MPI_File_open(MPI_COMM_WORLD, "no_data.bin", MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL,
                      &file));
  CHECK(MPI_File_set_view(file, (MPI_Offset)here * (c->strided ? piece_bytes : bytes), MPI_BYTE,
                          type, "native", MPI_INFO_NULL));
  MPI_Type_free(&type);
  return file;
}

// Writes or reads all of this rank's bytes, or none; checks the count.
static void move(const Case* c, unsigned char* buffer, int writing) {
  MPI_File file = open_with_view(c);
  MPI_Datatype empty_type, type = MPI_BYTE;
  MPI_Status status;
  int count = has_data(c, here) ? bytes : 0, moved = -1;
  MPI_Type_contiguous(0, MPI_INT, &empty_type);
  MPI_Type_commit(&empty_type);
  if (count == 0 && c->empty == 1) type = empty_type;
  int items = type == empty_type ? 5 : count;
  if (count == 0) {  // a pointer beyond the end of an empty view is no error
    buffer = NULL;
    CHECK(MPI_File_seek(file, 5, MPI_SEEK_SET));
  }
  if (writing)
    CHECK(MPI_File_write_all(file, buffer, items, type, &status));
  else
    CHECK(MPI_File_read_all(file, buffer, items, type, &status));
  CHECK(MPI_Get_elements(&status, MPI_BYTE, &moved));
  REQUIRE(moved == count);
  MPI_Type_free(&empty_type);
  CHECK(MPI_File_close(&file));
}

static void check_file(const Case* c) {
  long long size = 0, expected = 0;
  unsigned char* found = contents_of("no_data.bin", &size);
  for (int rank = 0; rank < ranks; ++rank) {
    if (!has_data(c, rank)) continue;
    for (int i = 0; i < bytes; ++i)
      REQUIRE(found[file_offset(c, rank, i)] == value_at(file_offset(c, rank, i)));
    if (file_offset(c, rank, bytes - 1) >= expected) expected = file_offset(c, rank, bytes - 1) + 1;
    for (int i = 0; i < bytes; ++i) found[file_offset(c, rank, i)] = 0;
  }
  REQUIRE(size == expected);
  for (long long i = 0; i < size; ++i) REQUIRE(found[i] == 0);
  free(found);
  REQUIRE(unlink("no_data.bin") == 0);
}

static void run(const Case* c) {
  static unsigned char buffer[bytes], back[bytes];
  for (int i = 0; i < bytes; ++i) buffer[i] = value_at(file_offset(c, here, i));
  memset(back, 0, sizeof back);
  move(c, buffer, 1);
  move(c, back, 0);
  if (has_data(c, here)) REQUIRE(memcmp(buffer, back, bytes) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (here == 0) check_file(c);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 60);
  const int everyone = (1 << ranks) - 1;
  const int masks[] = {0, 1, 1 << (ranks - 1), everyone & ~1, everyone & 0x55, everyone};
  for (size_t m = 0; m < sizeof masks / sizeof *masks; ++m)
    for (int strided = 0; strided < 2; ++strided)
      for (int empty = 0; empty < 3; ++empty) run(&(Case){masks[m], strided, empty});
  return end_test();
}
