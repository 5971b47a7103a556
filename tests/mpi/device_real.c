/* Buffers in the memory of a real GPU, of CUDA or HIP. Skips if there is none.
 *
 * RANKS: 2
 * ENV: SHIMA_LOG=error
 * LIBS: -ldl
 */
#include <dlfcn.h>
#include <stdint.h>

#include "expect.h"

enum { COUNT = 1 << 20, GAP = 3 };

/* The functions of a driver that the test needs. Addresses are numbers, as in CUDA. */
static uintptr_t (*allocate)(size_t len);
static int (*copy)(void* to, const void* from, size_t len, int to_device);

static int (*cuda_alloc)(unsigned long long* address, size_t len);
static int (*cuda_to_device)(unsigned long long to, const void* from, size_t len);
static int (*cuda_to_host)(void* to, unsigned long long from, size_t len);
static int (*hip_alloc)(void** address, size_t len);
static int (*hip_copy)(void* to, const void* from, size_t len, int kind);

static uintptr_t allocate_cuda(size_t len) {
  unsigned long long address = 0;
  return cuda_alloc(&address, len) == 0 ? (uintptr_t)address : 0;
}
static int copy_cuda(void* to, const void* from, size_t len, int to_device) {
  return to_device ? cuda_to_device((unsigned long long)(uintptr_t)to, from, len)
                   : cuda_to_host(to, (unsigned long long)(uintptr_t)from, len);
}

static int start_cuda(void) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  void* context = NULL;
  if (library == NULL) return 0;
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
  int (*retain)(void**, int) = (int (*)(void**, int))dlsym(library, "cuDevicePrimaryCtxRetain");
  int (*select)(void*) = (int (*)(void*))dlsym(library, "cuCtxSetCurrent");
  *(void**)&cuda_alloc = dlsym(library, "cuMemAlloc_v2");
  *(void**)&cuda_to_device = dlsym(library, "cuMemcpyHtoD_v2");
  *(void**)&cuda_to_host = dlsym(library, "cuMemcpyDtoH_v2");
  allocate = allocate_cuda;
  copy = copy_cuda;
  return init != NULL && init(0) == 0 && retain(&context, 0) == 0 && select(context) == 0;
}

static uintptr_t allocate_hip(size_t len) {
  void* address = NULL;
  return hip_alloc(&address, len) == 0 ? (uintptr_t)address : 0;
}
static int copy_hip(void* to, const void* from, size_t len, int to_device) {
  return hip_copy(to, from, len, to_device ? 1 : 2);
}

static int start_hip(void) {
  void* library = dlopen("libamdhip64.so.7", RTLD_NOW);
  if (library == NULL) library = dlopen("libamdhip64.so.6", RTLD_NOW);
  if (library == NULL) return 0;
  int (*count)(int*) = (int (*)(int*))dlsym(library, "hipGetDeviceCount");
  int devices = 0;
  *(void**)&hip_alloc = dlsym(library, "hipMalloc");
  *(void**)&hip_copy = dlsym(library, "hipMemcpy");
  allocate = allocate_hip;
  copy = copy_hip;
  return count(&devices) == 0 && devices > 0;
}

/* All numbers from the device, then back into memory with gaps. */
static void write_and_read(MPI_File fh, int collective) {
  int* const numbers = malloc(sizeof(int) * COUNT * GAP);
  int* const device = (int*)allocate(sizeof(int) * COUNT * GAP);
  const MPI_Offset at = (MPI_Offset)sizeof(int) * COUNT * here;
  MPI_Datatype spread;
  EXPECT(device != NULL);
  MPI_Type_create_resized(MPI_INT, 0, sizeof(int) * GAP, &spread);
  MPI_Type_commit(&spread);
  for (int i = 0; i < COUNT * GAP; ++i) numbers[i] = i * 31 + here;
  EXPECT_EQ(copy(device, numbers, sizeof(int) * COUNT * GAP, 1), 0);
  EXPECT_OK(collective ? MPI_File_write_at_all(fh, at, device, COUNT, MPI_INT, MPI_STATUS_IGNORE)
                       : MPI_File_write_at(fh, at, device, COUNT, MPI_INT, MPI_STATUS_IGNORE));
  expect_stored("device.out", at, numbers, sizeof(int) * COUNT);
  memset(numbers, 0x22, sizeof(int) * COUNT * GAP);
  EXPECT_EQ(copy(device, numbers, sizeof(int) * COUNT * GAP, 1), 0);
  EXPECT_OK(collective ? MPI_File_read_at_all(fh, at, device, COUNT, spread, MPI_STATUS_IGNORE)
                       : MPI_File_read_at(fh, at, device, COUNT, spread, MPI_STATUS_IGNORE));
  EXPECT_EQ(copy(numbers, device, sizeof(int) * COUNT * GAP, 0), 0);
  for (int i = 0; i < COUNT * GAP; ++i)
    EXPECT_EQ(numbers[i], i % GAP == 0 ? i / GAP * 31 + here : 0x22222222);
  MPI_Type_free(&spread);
  free(numbers);
}

int main(int argc, char** argv) {
  if (!start_cuda() && !start_hip()) {
    printf("skipped: no GPU with its driver (CUDA or HIP)\n");
    return 77;
  }
  start_test(&argc, &argv, 100);
  MPI_File fh = open_fresh("device.out");
  write_and_read(fh, 0);
  write_and_read(fh, 1);
  EXPECT_OK(MPI_File_close(&fh));
  return end_test();
}
