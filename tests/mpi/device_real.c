/* Buffers in the memory of a real GPU, of CUDA (also of a pool, managed, and pinned) or of HIP, by
 * several ways to access the file. Skips if there is no GPU.
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
typedef uintptr_t Allocate(size_t len); /* 0: there is no memory of this kind */
static Allocate* kinds[4];              /* of memory */
static int (*copy)(void* to, const void* from, size_t len, int to_device);

static int (*cuda_alloc)(unsigned long long* address, size_t len);
static int (*cuda_alloc_async)(unsigned long long* address, size_t len, void* stream);
static int (*cuda_alloc_managed)(unsigned long long* address, size_t len, unsigned flags);
static int (*cuda_alloc_host)(void** address, size_t len);
static int (*cuda_synchronize)(void);
static int (*cuda_to_device)(unsigned long long to, const void* from, size_t len);
static int (*cuda_to_host)(void* to, unsigned long long from, size_t len);
static int (*hip_alloc)(void** address, size_t len);
static int (*hip_copy)(void* to, const void* from, size_t len, int kind);

static uintptr_t allocated(int status, unsigned long long address) {
  enum { NOT_SUPPORTED = 801 };
  EXPECT(status == 0 || status == NOT_SUPPORTED);
  return status == 0 ? (uintptr_t)address : 0;
}
static uintptr_t allocate_cuda(size_t len) {
  unsigned long long address = 0;
  const int status = cuda_alloc(&address, len);
  return allocated(status, address);
}
/* Belongs to a pool, and to no context. */
static uintptr_t allocate_cuda_async(size_t len) {
  unsigned long long address = 0;
  const int status = cuda_alloc_async(&address, len, NULL);
  EXPECT_EQ(cuda_synchronize(), 0);
  return allocated(status, address);
}
/* The processor may use it, too. */
static uintptr_t allocate_cuda_managed(size_t len) {
  enum { GLOBAL = 1 };
  unsigned long long address = 0;
  const int status = cuda_alloc_managed(&address, len, GLOBAL);
  return allocated(status, address);
}
static uintptr_t allocate_cuda_host(size_t len) {
  void* address = NULL;
  const int status = cuda_alloc_host(&address, len);
  return allocated(status, (uintptr_t)address);
}
static int copy_cuda(void* to, const void* from, size_t len, int to_device) {
  if (!to_device) return cuda_to_host(to, (unsigned long long)(uintptr_t)from, len);
  const int status = cuda_to_device((unsigned long long)(uintptr_t)to, from, len);
  return status != 0 ? status : cuda_synchronize(); /* the processor may read managed memory next */
}

static int start_cuda(void) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  void* context = NULL;
  if (library == NULL) return 0;
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
  int (*retain)(void**, int) = (int (*)(void**, int))dlsym(library, "cuDevicePrimaryCtxRetain");
  int (*select)(void*) = (int (*)(void*))dlsym(library, "cuCtxSetCurrent");
  *(void**)&cuda_alloc = dlsym(library, "cuMemAlloc_v2");
  *(void**)&cuda_alloc_async = dlsym(library, "cuMemAllocAsync");
  *(void**)&cuda_alloc_managed = dlsym(library, "cuMemAllocManaged");
  *(void**)&cuda_alloc_host = dlsym(library, "cuMemAllocHost_v2");
  *(void**)&cuda_synchronize = dlsym(library, "cuCtxSynchronize");
  *(void**)&cuda_to_device = dlsym(library, "cuMemcpyHtoD_v2");
  *(void**)&cuda_to_host = dlsym(library, "cuMemcpyDtoH_v2");
  if (init == NULL || init(0) != 0 || retain(&context, 0) != 0 || select(context) != 0) return 0;
  kinds[0] = allocate_cuda;
  if (cuda_alloc_async != NULL) kinds[1] = allocate_cuda_async; /* since CUDA 11.2 */
  kinds[2] = allocate_cuda_managed;
  kinds[3] = allocate_cuda_host;
  copy = copy_cuda;
  return 1;
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
  kinds[0] = allocate_hip;
  copy = copy_hip;
  return count(&devices) == 0 && devices > 0;
}

enum Way { INDEPENDENT, COLLECTIVE, NONBLOCKING, NONBLOCKING_COLLECTIVE, SPLIT, WAYS };

static void write_by(enum Way way, MPI_File fh, MPI_Offset at, const void* from) {
  MPI_Request request;
  switch (way) {
    case INDEPENDENT:
      EXPECT_OK(MPI_File_write_at(fh, at, from, COUNT, MPI_INT, MPI_STATUS_IGNORE));
      break;
    case COLLECTIVE:
      EXPECT_OK(MPI_File_write_at_all(fh, at, from, COUNT, MPI_INT, MPI_STATUS_IGNORE));
      break;
    case NONBLOCKING:
      EXPECT_OK(MPI_File_iwrite_at(fh, at, from, COUNT, MPI_INT, &request));
      EXPECT_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      break;
    case NONBLOCKING_COLLECTIVE:
      EXPECT_OK(MPI_File_iwrite_at_all(fh, at, from, COUNT, MPI_INT, &request));
      EXPECT_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      break;
    default:
      EXPECT_OK(MPI_File_write_at_all_begin(fh, at, from, COUNT, MPI_INT));
      EXPECT_OK(MPI_File_write_at_all_end(fh, from, MPI_STATUS_IGNORE));
  }
}

static void read_by(enum Way way, MPI_File fh, MPI_Offset at, void* into, MPI_Datatype type) {
  MPI_Request request;
  switch (way) {
    case INDEPENDENT:
      EXPECT_OK(MPI_File_read_at(fh, at, into, COUNT, type, MPI_STATUS_IGNORE));
      break;
    case COLLECTIVE:
      EXPECT_OK(MPI_File_read_at_all(fh, at, into, COUNT, type, MPI_STATUS_IGNORE));
      break;
    case NONBLOCKING:
      EXPECT_OK(MPI_File_iread_at(fh, at, into, COUNT, type, &request));
      EXPECT_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      break;
    case NONBLOCKING_COLLECTIVE:
      EXPECT_OK(MPI_File_iread_at_all(fh, at, into, COUNT, type, &request));
      EXPECT_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      break;
    default:
      EXPECT_OK(MPI_File_read_at_all_begin(fh, at, into, COUNT, type));
      EXPECT_OK(MPI_File_read_at_all_end(fh, into, MPI_STATUS_IGNORE));
  }
}

/* All numbers from the device, then back into memory with gaps. */
static void write_and_read(MPI_File fh, int* device, enum Way way) {
  const size_t len = sizeof(int) * COUNT * GAP;
  const int seed = here + (int)way;
  int* const numbers = malloc(len);
  const MPI_Offset at = (MPI_Offset)sizeof(int) * COUNT * here;
  MPI_Datatype spread;
  MPI_Type_create_resized(MPI_INT, 0, sizeof(int) * GAP, &spread);
  MPI_Type_commit(&spread);
  for (int i = 0; i < COUNT * GAP; ++i) numbers[i] = i * 31 + seed;
  EXPECT_EQ(copy(device, numbers, len, 1), 0);
  write_by(way, fh, at, device);
  expect_stored("device.out", at, numbers, sizeof(int) * COUNT);
  memset(numbers, 0x22, len);
  EXPECT_EQ(copy(device, numbers, len, 1), 0);
  read_by(way, fh, at, device, spread);
  EXPECT_EQ(copy(numbers, device, len, 0), 0);
  for (int i = 0; i < COUNT * GAP; ++i)
    EXPECT_EQ(numbers[i], i % GAP == 0 ? i / GAP * 31 + seed : 0x22222222);
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
  for (unsigned kind = 0; kind < sizeof kinds / sizeof *kinds; ++kind) {
    int* const device = kinds[kind] != NULL ? (int*)kinds[kind](sizeof(int) * COUNT * GAP) : NULL;
    int is_there = device != NULL;
    MPI_Allreduce(MPI_IN_PLACE, &is_there, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (here == 0) printf("kind of memory %u: %s\n", kind, is_there ? "tested" : "none");
    if (kind == 0) EXPECT(is_there);
    for (int way = 0; is_there && way < WAYS; ++way) write_and_read(fh, device, (enum Way)way);
  }
  EXPECT_OK(MPI_File_close(&fh));
  return end_test();
}
