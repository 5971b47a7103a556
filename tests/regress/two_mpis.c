/* Started by two_mpis.sh; loads two MPIs, looks whose calls their handles give, and uses one.
 *
 *   two_mpis mpich|openmpi LIBRARY LIBRARY     which to use, in which order to load them
 *
 * Uses the handles of both MPIs, so that no mpi.h is needed.
 *
 * RANKS: none
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct mpi {
  void* library;
  int is_openmpi;
} mpi;

static void* call(mpi of, const char* name) {
  void* found = dlsym(of.library, name);
  if (found == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return found;
}

static mpi load(const char* path) {
  mpi loaded = {dlopen(path, RTLD_NOW | RTLD_LOCAL), 0};
  if (loaded.library == NULL) {
    fprintf(stderr, "%s: %s\n", path, dlerror());
    exit(1);
  }
  loaded.is_openmpi = strstr(path, "libmpi.so.40") != NULL;
  return loaded;
}

/* The MPI itself tells what it is, through a call that Shima leaves alone. */
static void must_be_itself(mpi one) {
  char version[10000] = "";
  int length = 0;
  ((int (*)(char*, int*))call(one, "MPI_Get_library_version"))(version, &length);
  if ((strstr(version, "Open MPI") != NULL) == one.is_openmpi) return;
  fprintf(stderr, "%s's handle is of %s\n", one.is_openmpi ? "Open MPI" : "MPICH", version);
  exit(1);
}

static void* handle(mpi of, const char* openmpi, long mpich) {
  return of.is_openmpi ? call(of, openmpi) : (void*)mpich;
}

static int use(mpi one, int argc, char** argv) {
  void* const world = handle(one, "ompi_mpi_comm_world", 0x44000000);
  void* const byte = handle(one, "ompi_mpi_byte", 0x4c00010d);
  void* const info_null = handle(one, "ompi_mpi_info_null", 0x1c000000);
  void* const no_status = one.is_openmpi ? NULL : (void*)1;
  const int create_rdwr = 1 | 8;
  char bytes[10] = "123456789", back[10] = "";
  void* file = NULL;
  int failed = 0, size = 0;
  failed |= ((int (*)(int*, char***))call(one, "MPI_Init"))(&argc, &argv);
  failed |= ((int (*)(void*, int*))call(one, "MPI_Comm_size"))(world, &size);
  failed |= ((int (*)(void*, const char*, int, void*, void**))call(one, "MPI_File_open"))(
      world, "data", one.is_openmpi ? create_rdwr : create_rdwr, info_null, &file);
  failed |= ((int (*)(void*, long, const void*, int, void*, void*))call(
      one, "MPI_File_write_at_all"))(file, 0, bytes, 10, byte, no_status);
  failed |= ((int (*)(void*, long, void*, int, void*, void*))call(one, "MPI_File_read_at"))(
      file, 0, back, 10, byte, no_status);
  failed |= ((int (*)(void**))call(one, "MPI_File_close"))(&file);
  failed |= ((int (*)(void))call(one, "MPI_Finalize"))();
  return failed || size != 1 || strcmp(bytes, back) != 0;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const mpi first = load(argv[2]), second = load(argv[3]);
  must_be_itself(first);
  must_be_itself(second);
  const int wants_openmpi = strcmp(argv[1], "openmpi") == 0;
  return use(first.is_openmpi == wants_openmpi ? first : second, argc, argv);
}
