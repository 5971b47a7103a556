/* A GPU driver that a program loads with local scope, as CUDA's runtime does, and after the file is
 * open, is found by the name of its file.
 *
 * RANKS: 2
 * ENV: SHIMA_LOG=error
 * LIBS: -ldl
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"

static const char driver_source[] =
    "#include \"simulated_gpu.h\"\n"
    "char* start(void) { sim_start(); return sim_address(SIM_CUDA, 0); }\n"
    "char* bytes(void) { return sim_bytes(SIM_CUDA, 0); }\n";

/* Compiles a driver and loads it with local scope. */
static void* load_driver(void) {
  char directory[40], path[80], headers[400], command[900];
  snprintf(headers, sizeof headers, "%s", __FILE__);
  *strrchr(headers, '/') = 0;
  snprintf(directory, sizeof directory, "./driver-%d", (int)getpid());
  snprintf(command, sizeof command, "mkdir %s && cc -shared -fPIC -I%s/.. -o %s/libcuda.so.1 -xc -",
           directory, headers, directory);
  FILE* compiler = popen(command, "w");
  if (compiler == NULL) return NULL;
  fputs(driver_source, compiler);
  if (pclose(compiler) != 0) return NULL;
  snprintf(path, sizeof path, "%s/libcuda.so.1", directory);
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

int main(int argc, char** argv) {
  char host[100] = "host";
  start_test(&argc, &argv, 100);
  MPI_File fh = open_fresh("device.out");
  EXPECT_OK(MPI_File_write_at_all(fh, 100 * here, host, 100, MPI_BYTE, MPI_STATUS_IGNORE));
  void* const driver = load_driver();
  EXPECT(driver != NULL);
  char* const device = ((char* (*)(void))dlsym(driver, "start"))();
  char* const bytes = ((char* (*)(void))dlsym(driver, "bytes"))();
  for (int i = 0; i < 100; ++i) bytes[i] = (char)value_at(i);
  EXPECT_OK(MPI_File_write_at_all(fh, 100 * here, device, 100, MPI_BYTE, MPI_STATUS_IGNORE));
  expect_stored("device.out", 100 * here, bytes, 100);
  EXPECT_OK(MPI_File_close(&fh));
  return end_test();
}
