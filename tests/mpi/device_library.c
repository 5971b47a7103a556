/* A GPU driver that is loaded with RTLD_LOCAL, as CUDA's runtime loads it, is found by its file
 * name.
 *
 * RANKS: 1 2
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
    "char device[4096];\n"
    "int cuPointerGetAttribute(void* data, int attribute, unsigned long long pointer) {\n"
    "  unsigned long long begin = (unsigned long long)(unsigned long)device;\n"
    "  int inside = pointer >= begin && pointer < begin + 4096;\n"
    "  if (attribute == 2) *(unsigned*)data = inside ? 2 : 1;\n"
    "  if (attribute == 8) *(unsigned*)data = 0;\n"
    "  return 0;\n"
    "}\n";

/* Creates a driver and loads it with RTLD_LOCAL; returns its memory, or NULL. */
static char* load_driver(void) {
  char folder[40], path[80], command[200];
  snprintf(folder, sizeof folder, "./driver-%d", (int)getpid());
  snprintf(command, sizeof command, "mkdir %s && cc -shared -fPIC -o %s/libcuda.so.1 -xc -", folder,
           folder);
  FILE* compiler = popen(command, "w");
  if (compiler == NULL) return NULL;
  fputs(driver_source, compiler);
  if (pclose(compiler) != 0) return NULL;
  snprintf(path, sizeof path, "%s/libcuda.so.1", folder);
  void* driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return driver == NULL ? NULL : dlsym(driver, "device");
}

int main(int argc, char** argv) {
  MPI_File fh;
  char* device = load_driver();
  start_test(&argc, &argv, 100);
  EXPECT_EQ(device != NULL, 1);
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "device.out",
                          MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                          &fh));
  EXPECT_CLASS(MPI_File_write_at_all(fh, 100 * here, device, 100, MPI_BYTE, MPI_STATUS_IGNORE),
               MPI_ERR_ARG);
  EXPECT_OK(MPI_File_close(&fh));
  return end_test();
}
