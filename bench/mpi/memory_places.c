// memory_places: reads of a cached file into memory at a page's beginning, and behind it.
//
// Large memory from malloc lies 16 bytes behind the beginning of a page. Some processors copy from
// a page of a file to such a place several times slower (docs/measurements.md, "Copies at a short
// distance"). Rounds of plain pread and of MPI_File_read_at alternate; each reads the whole file
// into memory of its size. All bytes are checked.
//
//     memory_places FILE    prints a JSON object for each method, length of a read, and place

#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>

#include "measure.h"

enum { file_bytes = 64 << 20, page_bytes = 4096, rounds = 5 };

static void make_file(const char* path, uint64_t* words) {
  const int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0666);
  if (fd < 0) fail("cannot create the file");
  for (long i = 0; i < file_bytes / 8; ++i) words[i] = word_at((uint64_t)i * 8);
  if (write(fd, words, file_bytes) != file_bytes || fsync(fd) != 0) fail("cannot fill the file");
  close(fd);
}

static double read_plainly(int fd, char* memory, int len) {
  const double started = MPI_Wtime();
  for (off_t at = 0; at < file_bytes; at += len)
    if (pread(fd, memory + at, (size_t)len, at) != len) fail("pread");
  return MPI_Wtime() - started;
}

static double read_by_mpi(MPI_File file, char* memory, int len) {
  const double started = MPI_Wtime();
  for (MPI_Offset at = 0; at < file_bytes; at += len)
    check(MPI_File_read_at(file, at, memory + at, len, MPI_BYTE, MPI_STATUS_IGNORE), "read_at");
  return MPI_Wtime() - started;
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void report(const char* method, int len, int place, double* seconds) {
  qsort(seconds, rounds, sizeof *seconds, by_size);
  printf(
      "{\"program\":\"memory_places\",\"method\":\"%s\",\"len\":%d,\"place\":%d,"
      "\"mib_per_s\":%.1f}\n",
      method, len, place, file_bytes / 1048576.0 / seconds[rounds / 2]);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 2) fail("usage: memory_places FILE");
  uint64_t* words = malloc(file_bytes);
  char* pages = aligned_alloc(page_bytes, file_bytes + page_bytes);
  if (words == NULL || pages == NULL) fail("no memory");
  make_file(argv[1], words);
  memset(pages, 0, file_bytes + page_bytes);
  MPI_File file;
  check(MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &file), "open");
  const int fd = open(argv[1], O_RDONLY);
  for (int len = 4 << 10; len <= 1 << 20; len *= 16)
    for (int place = 0; place <= 16; place += 16) {
      double plain[rounds], mpi[rounds];
      for (int round = 0; round < rounds; ++round) {
        plain[round] = read_plainly(fd, pages + place, len);
        if (memcmp(pages + place, words, file_bytes) != 0) fail("wrong bytes of pread");
        memset(pages + place, 0, file_bytes);
        mpi[round] = read_by_mpi(file, pages + place, len);
        if (memcmp(pages + place, words, file_bytes) != 0) fail("wrong bytes of MPI_File_read_at");
      }
      report("pread", len, place, plain);
      report("mpi", len, place, mpi);
    }
  close(fd);
  check(MPI_File_close(&file), "close");
  unlink(argv[1]);
  free(words);
  free(pages);
  MPI_Finalize();
  return 0;
}
