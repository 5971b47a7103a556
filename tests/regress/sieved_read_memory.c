// RANKS: 1
// A read of small pieces through a buffer touches no fresh memory each time.
//
// A buffer of 128 KiB or more was allocated for each call and given back to the system after it, so
// that each read of pieces with gaps, or into memory in tiny pieces, began with a page fault for
// each page.
#include <sys/resource.h>

#include "mpi_check.h"

enum { piece_bytes = 512, piece_count = 256, bytes = piece_bytes * piece_count, calls = 400 };

static const char* const path = "sieved.bin";
static unsigned char pieces[bytes], apart[2 * bytes];

static long page_faults(void) {
  struct rusage usage;
  REQUIRE(getrusage(RUSAGE_SELF, &usage) == 0);
  return usage.ru_minflt;
}

static unsigned char value_of(long long offset) { return (unsigned char)(offset % 251); }

static void create_file(void) {
  static unsigned char whole[4 * bytes];
  for (long long i = 0; i < (long long)sizeof whole; ++i) whole[i] = value_of(i);
  FILE* file = fopen(path, "wb");
  REQUIRE(file && fwrite(whole, sizeof whole, 1, file) == 1 && fclose(file) == 0);
}

// Most of `calls` reads must find the buffer that the first ones left.
static void read_often(MPI_File file, void* memory, int count, MPI_Datatype type) {
  long before = 0;
  for (int call = 0; call < calls; ++call) {
    if (call == calls / 4) before = page_faults();
    CHECK(MPI_File_read_at(file, 0, memory, count, type, MPI_STATUS_IGNORE));
  }
  REQUIRE(page_faults() - before < calls);
}

int main(int argc, char** argv) {
  MPI_File file;
  MPI_Datatype piece, with_gap, tiny;
  start_test(&argc, &argv, 60);
  create_file();
  CHECK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));

  MPI_Type_vector(bytes / 4, 4, 8, MPI_BYTE, &tiny);
  MPI_Type_commit(&tiny);
  read_often(file, apart, 1, tiny);
  for (int i = 0; i < bytes; ++i) REQUIRE(apart[i / 4 * 8 + i % 4] == value_of(i));

  MPI_Type_contiguous(piece_bytes, MPI_BYTE, &piece);
  MPI_Type_create_resized(piece, 0, 2 * piece_bytes, &with_gap);
  MPI_Type_commit(&with_gap);
  CHECK(MPI_File_set_view(file, piece_bytes, MPI_BYTE, with_gap, "native", MPI_INFO_NULL));
  read_often(file, pieces, bytes, MPI_BYTE);
  for (long long i = 0; i < bytes; ++i)
    REQUIRE(pieces[i] == value_of(i + (i / piece_bytes + 1) * piece_bytes));

  MPI_Type_free(&tiny);
  MPI_Type_free(&piece);
  MPI_Type_free(&with_gap);
  CHECK(MPI_File_close(&file));
  return end_test();
}
