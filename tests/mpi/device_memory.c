/* A buffer in a GPU's memory is an error on every path, on all ranks in collective calls. The
 * driver is simulated: a function with the driver's name that reports one page as device memory.
 *
 * RANKS: 1 3
 * CFLAGS: -rdynamic
 * ENV: SHIMA_LOG=error
 */
#include <sys/mman.h>

#include "expect.h"

static char* device;

int cuPointerGetAttribute(void* data, int attribute, unsigned long long pointer) {
  const int inside = pointer >= (unsigned long long)(size_t)device &&
                     pointer < (unsigned long long)(size_t)device + 4096;
  if (attribute == 2) *(unsigned*)data = inside ? 2 : 1;
  if (attribute == 8) *(unsigned*)data = 0;
  return 0;
}

int main(int argc, char** argv) {
  char host[100] = "host";
  MPI_File fh;
  MPI_Offset size = -1;
  start_test(&argc, &argv, 100);
  device = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "device.out",
                          MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                          &fh));
  EXPECT_CLASS(MPI_File_write_at(fh, 0, device, 100, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_ARG);
  EXPECT_CLASS(MPI_File_read_at(fh, 0, device, 100, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_ARG);
  EXPECT_CLASS(MPI_File_write_at_all(fh, 100 * here, here == ranks - 1 ? device : host, 100,
                                     MPI_BYTE, MPI_STATUS_IGNORE),
               MPI_ERR_ARG);
  EXPECT_OK(MPI_File_get_size(fh, &size));
  EXPECT_EQ(size, 0);
  EXPECT_OK(MPI_File_write_at_all(fh, 100 * here, host, 100, MPI_BYTE, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_close(&fh));
  return end_test();
}
