/* A program like those of Julia or ctypes: it opens MPI by path and looks up each call by name.
 * Uses MPICH's handles, so that no mpi.h is needed.
 */
/* RANKS: none */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void* library;

static void* call(const char* name) {
  void* found = dlsym(library, name);
  if (found == NULL) fprintf(stderr, "%s\n", dlerror());
  return found;
}

int main(int argc, char** argv) {
  const int world = 0x44000000, byte = 0x4c00010d, info_null = 0x1c000000, create_rdwr = 1 | 8;
  char bytes[10] = "123456789", back[10] = "";
  void* file;
  int failed = 0;
  library = dlopen(argc > 1 ? argv[1] : "libmpi.so.12", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  if (argc > 2) library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  failed |= ((int (*)(int*, char***))call("MPI_Init"))(&argc, &argv);
  failed |= ((int (*)(int, const char*, int, int, void**))call("MPI_File_open"))(
      world, "data", create_rdwr, info_null, &file);
  failed |= ((int (*)(void*, long, const void*, int, int, void*))call("MPI_File_write_at_all"))(
      file, 0, bytes, 10, byte, (void*)1);
  failed |= ((int (*)(void*, long, void*, int, int, void*))call("MPI_File_read_at"))(
      file, 0, back, 10, byte, (void*)1);
  failed |= ((int (*)(void**))call("MPI_File_close"))(&file);
  failed |= ((int (*)(void))call("MPI_Finalize"))();
  return failed || strcmp(bytes, back) != 0;
}
