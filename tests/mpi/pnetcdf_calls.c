/* The POSIX calls of PnetCDF, in functions with the names that they have in PnetCDF, see the data
 * of a striped file; those of the program see its master file. (Debian has PnetCDF for one MPI
 * only; pnetcdf_striped.py uses it.)
 *
 * RANKS: 1
 * VARIANTS: striped
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpi_check.h"

static const char name[] = "file.nc";
static const char data[] = "CDF\005 and more";

static int read_beginning(const char* path, char* text) {
  const int file = open(path, O_RDONLY, 0400);
  const ssize_t found = file < 0 ? -1 : read(file, text, 8);
  if (file >= 0) close(file);
  return (int)found;
}

__attribute__((noinline)) int ncmpi_inq_file_format(const char* path, char* text) {
  const int file = open(path, O_RDONLY, 0400);
  const ssize_t found = file < 0 ? -1 : read(file, text, 8);
  if (file >= 0) close(file);
  return (int)found;
}

/* -1: there is no such file. */
__attribute__((noinline)) int ncmpio_create(const char* path, int removes) {
  struct stat facts;
  if (access(path, F_OK) != 0 || lstat(path, &facts) != 0) return -1;
  const int code = removes ? unlink(path) : truncate(path, 0);
  return code == 0 ? 0 : -2;
}

__attribute__((noinline)) int ncmpi_delete(const char* path) {
  const int code = unlink(path);
  return code == 0 ? 0 : -1;
}

static void write_file(void) {
  MPI_File file;
  CHECK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  CHECK(MPI_File_write_at_all(file, 0, data, (int)sizeof data, MPI_CHAR, MPI_STATUS_IGNORE));
  CHECK(MPI_File_close(&file));
}

static MPI_Offset size_of_file(void) {
  MPI_File file;
  MPI_Offset size = -1;
  CHECK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  CHECK(MPI_File_get_size(file, &size));
  CHECK(MPI_File_close(&file));
  return size;
}

static int is_striped(void) {
  char text[8];
  return read_beginning(name, text) == 8 && memcmp(text, "shima st", 8) == 0;
}

/* How many files on the targets belong to `file`. */
static int parts_of(const struct stored_file* file) {
  int parts = 0, subfiles = 0;
  for (int i = 0; i < file->region_count; ++i) subfiles += file->regions[i].count;
  for (int i = 0; i < subfiles; ++i) {
    DIR* directory = opendir(*file->directories[i] ? file->directories[i] : ".shima");
    for (struct dirent* entry; directory && (entry = readdir(directory));)
      parts += strncmp(entry->d_name, file->id, strlen(file->id)) == 0;
    if (directory) closedir(directory);
  }
  return parts;
}

int main(int argc, char** argv) {
  char text[8];
  start_test(&argc, &argv, 60);
  write_file();
  const struct stored_file first = stored_open(name);
  REQUIRE(is_striped() == !first.plain);
  REQUIRE(ncmpi_inq_file_format(name, text) == 8 && memcmp(text, data, 8) == 0);
  REQUIRE(ncmpio_create(name, 0) == 0);
  REQUIRE(size_of_file() == 0 && is_striped() == !first.plain);
  write_file();
  REQUIRE(size_of_file() == (MPI_Offset)sizeof data && (first.plain || parts_of(&first) > 0));
  REQUIRE(ncmpio_create(name, 1) == 0 && access(name, F_OK) != 0 && parts_of(&first) == 0);
  write_file();
  const struct stored_file second = stored_open(name);
  REQUIRE(second.plain == first.plain);
  REQUIRE(ncmpi_delete(name) == 0 && ncmpi_delete(name) == -1 && parts_of(&second) == 0);
  REQUIRE(ncmpio_create(name, 0) == -1);
  return end_test();
}
