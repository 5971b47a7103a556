// strided_read: one process reads pieces of a file at a constant distance, none of them cached.
//
// The file is written, synced and dropped from the page cache; then each piece is read by its own
// call, from the first to the last, and checked. This measures how busy the disk is with a caller
// that makes one request at a time.
//
//     strided_read FILE PIECE_BYTES STRIDE_BYTES MIB    prints one JSON object

#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>

#include "measure.h"

enum { written_at_once = 1 << 20 };

static void make_file(const char* path, long mib) {
  unsigned char* block = malloc(written_at_once);
  const int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0666);
  if (block == NULL || fd < 0) fail("cannot create the file");
  for (long i = 0; i < mib; ++i) {
    for (long k = 0; k < written_at_once; k += 8) {
      const uint64_t word = word_at((uint64_t)(i * written_at_once + k));
      memcpy(block + k, &word, sizeof word);
    }
    if (write(fd, block, written_at_once) != written_at_once) fail("cannot fill the file");
  }
  if (fsync(fd) != 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
    fail("cannot drop the file from the page cache");
  close(fd);
  free(block);
}

static long wrong_words(const unsigned char* piece, long len, MPI_Offset at) {
  long wrong = 0;
  for (long k = 0; k < len; k += 8) {
    const uint64_t word = word_at((uint64_t)(at + k));
    wrong += memcmp(piece + k, &word, sizeof word) != 0;
  }
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 5) fail("usage: strided_read FILE PIECE_BYTES STRIDE_BYTES MIB");
  const long piece = atol(argv[2]), stride = atol(argv[3]), mib = atol(argv[4]);
  make_file(argv[1], mib);
  unsigned char* data = malloc((size_t)piece);
  MPI_File file;
  long reads = 0, wrong = 0;
  check(MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &file), "open");
  const double started = MPI_Wtime();
  for (MPI_Offset at = 0; at + piece <= mib * written_at_once; at += stride, ++reads) {
    check(MPI_File_read_at(file, at, data, (int)piece, MPI_BYTE, MPI_STATUS_IGNORE), "read_at");
    wrong += wrong_words(data, piece, at);
  }
  const double seconds = MPI_Wtime() - started;
  check(MPI_File_close(&file), "close");
  unlink(argv[1]);
  printf("{\"program\":\"strided_read\",\"reads_per_s\":%.0f,\"wrong_words\":%ld}\n",
         (double)reads / seconds, wrong);
  free(data);
  MPI_Finalize();
  return 0;
}
