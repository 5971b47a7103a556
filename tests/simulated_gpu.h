/* Three GPU drivers for tests: CUDA, HIP and Level Zero, as far as Shima uses them.
 *
 * Device memory lies at addresses that are mapped without any permission, so that whoever touches
 * it otherwise than by a copy function ends with a signal; its bytes are elsewhere. Each driver has
 * two devices of SIM_DEVICE_BYTES. Copies are asynchronous in the strictest sense: nothing moves
 * before the copy's event is waited for, and a copy that is never waited for never happens. CUDA
 * and HIP take calls only if the device of the stream is selected in the calling thread. Every call
 * that matters leaves a letter in sim_log: C copy, S wait for an event.
 *
 * Include it in the program, linked with -rdynamic, or compile it as a library of a driver's name.
 */
#ifndef SHIMA_TESTS_SIMULATED_GPU_H
#define SHIMA_TESTS_SIMULATED_GPU_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SIM_CUDA, SIM_HIP, SIM_ZE, SIM_DRIVERS };
enum { SIM_DEVICES = 2, SIM_DEVICE_BYTES = 1 << 20 };

typedef struct {
  char* addresses; /* of both devices of a driver, one after the other */
  char* bytes;
} sim_memory;

typedef struct sim_copy {
  struct sim_copy* next;
  char *to, *from;
  size_t to_pitch, from_pitch, width, height;
} sim_copy;

typedef struct {
  int driver, device;
  sim_copy *first, **last;
  long issued, done;
} sim_stream;

typedef struct {
  sim_stream* stream;
  long up_to;
  int signaled;
} sim_event;

static sim_memory sim_memories[SIM_DRIVERS];
static pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;
static char sim_log[4096];
static int sim_log_len;
static int sim_copies_until_failure = -1; /* how many copies go well before one fails */
static int sim_waits_until_failure = -1;
static long sim_pinned_buffers, sim_open_streams;
static int sim_managed; /* the first bytes of CUDA's second device: managed memory */
static __thread int sim_cuda_context[8], sim_cuda_depth, sim_hip_device, sim_hip_error;

static inline void sim_note(char letter) {
  pthread_mutex_lock(&sim_lock);
  if (sim_log_len + 1 < (int)sizeof sim_log) sim_log[sim_log_len++] = letter;
  sim_log[sim_log_len] = 0;
  pthread_mutex_unlock(&sim_lock);
}

static inline void sim_clear_log(void) { sim_log[sim_log_len = 0] = 0; }

/* Has to be called before anything else. */
static inline void sim_start(void) {
  for (int i = 0; i < SIM_DRIVERS; ++i) {
    const size_t len = (size_t)SIM_DEVICES * SIM_DEVICE_BYTES;
    sim_memories[i].addresses =
        (char*)mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sim_memories[i].bytes =
        (char*)mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
}

/* The address of a device's memory, and where its bytes are. */
static inline char* sim_address(int driver, int device) {
  return sim_memories[driver].addresses + (size_t)device * SIM_DEVICE_BYTES;
}
static inline char* sim_bytes(int driver, int device) {
  return sim_memories[driver].bytes + (size_t)device * SIM_DEVICE_BYTES;
}

/* The device of an address, or -1. */
static inline int sim_device_of(int driver, const void* address) {
  const uintptr_t at = (uintptr_t)address - (uintptr_t)sim_memories[driver].addresses;
  return at < (size_t)SIM_DEVICES * SIM_DEVICE_BYTES ? (int)(at / SIM_DEVICE_BYTES) : -1;
}

/* Where the bytes of an address are, NULL if they reach beyond its device. */
static inline char* sim_place(int driver, char* address, size_t len) {
  const int device = sim_device_of(driver, address);
  if (device < 0) return address;
  const size_t at = (size_t)(address - sim_address(driver, device));
  return at + len <= SIM_DEVICE_BYTES ? sim_bytes(driver, device) + at : NULL;
}

static inline int sim_fails(int* countdown) {
  if (*countdown < 0) return 0;
  return (*countdown)-- == 0;
}

static inline int sim_start_copy(sim_stream* stream, char* to, size_t to_pitch, char* from,
                                 size_t from_pitch, size_t width, size_t height) {
  const size_t to_span = to_pitch * (height - 1) + width;
  const size_t from_span = from_pitch * (height - 1) + width;
  sim_note('C');
  if (sim_fails(&sim_copies_until_failure)) return 700;
  if (width == 0 || height == 0 || (height > 1 && (to_pitch < width || from_pitch < width)))
    return 1;
  to = sim_place(stream->driver, to, to_span);
  from = sim_place(stream->driver, from, from_span);
  if (to == NULL || from == NULL) return 1;
  sim_copy* copy = (sim_copy*)malloc(sizeof *copy);
  sim_copy made = {NULL, to, from, to_pitch, from_pitch, width, height};
  *copy = made;
  pthread_mutex_lock(&sim_lock);
  *stream->last = copy;
  stream->last = &copy->next;
  ++stream->issued;
  pthread_mutex_unlock(&sim_lock);
  return 0;
}

static inline sim_stream* sim_make_stream(int driver, int device) {
  sim_stream* stream = (sim_stream*)calloc(1, sizeof *stream);
  stream->driver = driver;
  stream->device = device;
  stream->last = &stream->first;
  __atomic_add_fetch(&sim_open_streams, 1, __ATOMIC_SEQ_CST);
  return stream;
}

static inline int sim_free_stream(sim_stream* stream) {
  __atomic_sub_fetch(&sim_open_streams, 1, __ATOMIC_SEQ_CST);
  free(stream);
  return 0;
}

static inline int sim_wait(sim_event* event) {
  sim_note('S');
  pthread_mutex_lock(&sim_lock);
  sim_stream* const stream = event->stream;
  while (stream != NULL && stream->done < event->up_to) {
    sim_copy* const copy = stream->first;
    for (size_t row = 0; row < copy->height; ++row)
      memcpy(copy->to + row * copy->to_pitch, copy->from + row * copy->from_pitch, copy->width);
    stream->first = copy->next;
    if (stream->first == NULL) stream->last = &stream->first;
    ++stream->done;
    free(copy);
  }
  pthread_mutex_unlock(&sim_lock);
  return sim_fails(&sim_waits_until_failure) ? 700 : 0;
}

static inline int sim_record(sim_event* event, sim_stream* stream) {
  event->stream = stream;
  event->up_to = stream->issued;
  event->signaled = 1;
  return 0;
}

/* CUDA. Contexts are 1 + device; memory of the second device belongs to none. */

static inline int sim_cuda_current(void) {
  return sim_cuda_depth > 0 ? sim_cuda_context[sim_cuda_depth - 1] : 0;
}
static inline int sim_cuda_selected(const sim_stream* stream) {
  return sim_cuda_current() == stream->device + 1;
}

int cuPointerGetAttribute(void* data, int attribute, unsigned long long pointer) {
  const int device = sim_device_of(SIM_CUDA, (void*)(uintptr_t)pointer);
  if (device < 0) return 1;
  if (attribute == 1) *(void**)data = (void*)(uintptr_t)(device == 0 ? 1 : 0);
  if (attribute == 2) *(unsigned*)data = 2;
  if (attribute == 8) *(unsigned*)data = sim_managed && device == 1;
  if (attribute == 9) *(int*)data = device;
  return 0;
}
int cuCtxPushCurrent_v2(void* context) {
  if (sim_cuda_depth == 8) return 1;
  sim_cuda_context[sim_cuda_depth++] = (int)(uintptr_t)context;
  return 0;
}
int cuCtxPopCurrent_v2(void** context) {
  if (sim_cuda_depth == 0) return 201;
  *context = (void*)(uintptr_t)sim_cuda_context[--sim_cuda_depth];
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = (void*)(uintptr_t)(device + 1);
  return 0;
}
int cuMemHostRegister_v2(void* address, size_t len, unsigned flags) {
  if (flags != 1 || sim_cuda_current() == 0 || (uintptr_t)address % 4096 != 0) return 1;
  (void)len;
  __atomic_add_fetch(&sim_pinned_buffers, 1, __ATOMIC_SEQ_CST);
  return 0;
}
int cuMemHostUnregister(void* address) {
  (void)address;
  __atomic_sub_fetch(&sim_pinned_buffers, 1, __ATOMIC_SEQ_CST);
  return 0;
}
int cuStreamCreate(void** stream, unsigned flags) {
  if (flags != 0 || sim_cuda_current() == 0) return 201;
  *stream = sim_make_stream(SIM_CUDA, sim_cuda_current() - 1);
  return 0;
}
int cuStreamDestroy_v2(void* stream) { return sim_free_stream((sim_stream*)stream); }
int cuEventCreate(void** event, unsigned flags) {
  *event = calloc(1, sizeof(sim_event));
  return flags == 2 && sim_cuda_current() != 0 ? 0 : 1;
}
int cuEventRecord(void* event, void* stream) {
  if (!sim_cuda_selected((sim_stream*)stream)) return 400;
  return sim_record((sim_event*)event, (sim_stream*)stream);
}
int cuEventSynchronize(void* event) { return sim_wait((sim_event*)event); }
int cuEventDestroy_v2(void* event) {
  free(event);
  return 0;
}
int cuMemcpyAsync(unsigned long long to, unsigned long long from, size_t len, void* stream) {
  if (!sim_cuda_selected((sim_stream*)stream)) return 400;
  return sim_start_copy((sim_stream*)stream, (char*)(uintptr_t)to, len, (char*)(uintptr_t)from, len,
                        len, 1);
}
typedef struct {
  size_t from_x, from_y;
  unsigned from_type;
  const void* from_host;
  unsigned long long from_device;
  void* from_array;
  size_t from_pitch, to_x, to_y;
  unsigned to_type;
  void* to_host;
  unsigned long long to_device;
  void* to_array;
  size_t to_pitch, width, height;
} sim_cuda_rows;
int cuMemcpy2DAsync_v2(const void* description, void* stream) {
  const sim_cuda_rows* rows = (const sim_cuda_rows*)description;
  if (!sim_cuda_selected((sim_stream*)stream)) return 400;
  if (rows->from_type != 4 || rows->to_type != 4) return 1;
  return sim_start_copy((sim_stream*)stream, (char*)(uintptr_t)rows->to_device, rows->to_pitch,
                        (char*)(uintptr_t)rows->from_device, rows->from_pitch, rows->width,
                        rows->height);
}
int cuGetErrorString(int error, const char** text) {
  *text = error == 700 ? "an illegal memory access was encountered" : "simulated";
  return 0;
}

/* HIP. Host memory is an error to it, and errors stay until they are asked for. */

static inline int sim_hip(int error) {
  if (error != 0) sim_hip_error = error;
  return error;
}
static inline int sim_hip_selected(const sim_stream* stream) {
  return sim_hip_device == stream->device;
}

int hipRuntimeGetVersion(int* version) {
  *version = 60032830;
  return 0;
}
int hipPointerGetAttribute(void* data, int attribute, void* pointer) {
  const int device = sim_device_of(SIM_HIP, pointer);
  if (device < 0) return sim_hip(1);
  if (attribute == 2) *(unsigned*)data = 2;
  if (attribute == 8) *(unsigned*)data = 0;
  if (attribute == 9) *(int*)data = device;
  return 0;
}
int hipGetDevice(int* device) {
  *device = sim_hip_device;
  return 0;
}
int hipSetDevice(int device) {
  sim_hip_device = device;
  return 0;
}
int hipPeekAtLastError(void) { return sim_hip_error; }
int hipGetLastError(void) {
  const int error = sim_hip_error;
  sim_hip_error = 0;
  return error;
}
int hipHostRegister(void* address, size_t len, unsigned flags) {
  (void)address;
  (void)len;
  (void)flags;
  return sim_hip(2); /* cannot pin: a buffer that is not pinned works too */
}
int hipHostUnregister(void* address) {
  (void)address;
  return sim_hip(1);
}
int hipStreamCreateWithFlags(void** stream, unsigned flags) {
  *stream = sim_make_stream(SIM_HIP, sim_hip_device);
  return sim_hip(flags == 0 ? 0 : 1);
}
int hipStreamDestroy(void* stream) { return sim_free_stream((sim_stream*)stream); }
int hipEventCreateWithFlags(void** event, unsigned flags) {
  *event = calloc(1, sizeof(sim_event));
  return sim_hip(flags == 2 ? 0 : 1);
}
int hipEventRecord(void* event, void* stream) {
  if (!sim_hip_selected((sim_stream*)stream)) return sim_hip(400);
  return sim_record((sim_event*)event, (sim_stream*)stream);
}
int hipEventSynchronize(void* event) { return sim_hip(sim_wait((sim_event*)event)); }
int hipEventDestroy(void* event) {
  free(event);
  return 0;
}
int hipMemcpyAsync(void* to, const void* from, size_t len, int kind, void* stream) {
  if (kind != 4 || !sim_hip_selected((sim_stream*)stream)) return sim_hip(400);
  return sim_hip(sim_start_copy((sim_stream*)stream, (char*)to, len, (char*)from, len, len, 1));
}
int hipMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                     size_t height, int kind, void* stream) {
  if (kind != 4 || !sim_hip_selected((sim_stream*)stream)) return sim_hip(400);
  return sim_hip(sim_start_copy((sim_stream*)stream, (char*)to, to_pitch, (char*)from, from_pitch,
                                width, height));
}
const char* hipGetErrorString(int error) { return error == 700 ? "illegal address" : "simulated"; }

/* Level Zero. Descriptions begin with their kind; copies take host memory of the driver only. */

typedef struct {
  char* address;
  size_t len;
} sim_ze_block;
static sim_ze_block sim_ze_blocks[64];

static inline int sim_ze_knows(const char* address, size_t len) {
  if (sim_device_of(SIM_ZE, address) >= 0) return 1;
  for (int i = 0; i < 64; ++i) {
    const sim_ze_block* block = &sim_ze_blocks[i];
    if (block->address != NULL && address >= block->address &&
        address + len <= block->address + block->len)
      return 1;
  }
  return 0;
}
static inline int sim_ze_kind(const void* description) { return *(const int*)description; }
#define SIM_ZE_ERROR 0x78000004 /* ZE_RESULT_ERROR_INVALID_ARGUMENT */

int zeInit(uint32_t flags) { return flags == 0 ? 0 : SIM_ZE_ERROR; }
int zeDriverGet(uint32_t* count, void** drivers) {
  if (drivers != NULL) drivers[0] = sim_memories;
  *count = 1;
  return 0;
}
int zeContextCreate(void* driver, const void* description, void** context) {
  *context = sim_ze_blocks;
  return driver == sim_memories && sim_ze_kind(description) == 0xd ? 0 : SIM_ZE_ERROR;
}
typedef struct {
  int kind;
  void* next;
  int type;
  uint64_t id, page_size;
} sim_ze_properties;
int zeMemGetAllocProperties(void* context, const void* pointer, void* properties, void** device) {
  const int number = sim_device_of(SIM_ZE, pointer);
  if (context != sim_ze_blocks || sim_ze_kind(properties) != 0x17) return SIM_ZE_ERROR;
  ((sim_ze_properties*)properties)->type = number < 0 ? 0 : 2;
  *device = number < 0 ? NULL : (void*)(uintptr_t)(number + 1);
  return 0;
}
int zeMemAllocHost(void* context, const void* description, size_t len, size_t alignment,
                   void** address) {
  if (context != sim_ze_blocks || sim_ze_kind(description) != 0x16) return SIM_ZE_ERROR;
  for (int i = 0; i < 64; ++i) {
    if (sim_ze_blocks[i].address != NULL) continue;
    if (posix_memalign(address, alignment, len) != 0) return SIM_ZE_ERROR;
    sim_ze_block block = {(char*)*address, len};
    sim_ze_blocks[i] = block;
    return 0;
  }
  return SIM_ZE_ERROR;
}
int zeMemFree(void* context, void* address) {
  (void)context;
  for (int i = 0; i < 64; ++i)
    if (sim_ze_blocks[i].address == address) sim_ze_blocks[i].address = NULL;
  free(address);
  return 0;
}
typedef struct {
  int kind;
  const void* next;
  uint32_t ordinal, index, flags;
  int mode, priority;
} sim_ze_queue;
int zeCommandListCreateImmediate(void* context, void* device, const void* description,
                                 void** list) {
  const sim_ze_queue* queue = (const sim_ze_queue*)description;
  if (context != sim_ze_blocks || queue->kind != 0xe || queue->mode != 2) return SIM_ZE_ERROR;
  *list = sim_make_stream(SIM_ZE, (int)(uintptr_t)device - 1);
  return 0;
}
int zeCommandListDestroy(void* list) { return sim_free_stream((sim_stream*)list); }
int zeEventPoolCreate(void* context, const void* description, uint32_t count, void** devices,
                      void** pool) {
  (void)context;
  *pool = *devices;
  return count == 1 && sim_ze_kind(description) == 0x10 ? 0 : SIM_ZE_ERROR;
}
int zeEventPoolDestroy(void* pool) {
  (void)pool;
  return 0;
}
int zeEventCreate(void* pool, const void* description, void** event) {
  (void)pool;
  *event = calloc(1, sizeof(sim_event));
  return sim_ze_kind(description) == 0x11 ? 0 : SIM_ZE_ERROR;
}
int zeEventDestroy(void* event) {
  free(event);
  return 0;
}
int zeEventHostReset(void* event) {
  ((sim_event*)event)->signaled = 0;
  return 0;
}
int zeEventHostSynchronize(void* event, uint64_t timeout) {
  if (timeout != UINT64_MAX || !((sim_event*)event)->signaled) return SIM_ZE_ERROR;
  return sim_wait((sim_event*)event);
}
int zeCommandListAppendBarrier(void* list, void* signal, uint32_t count, void** waits) {
  (void)waits;
  if (count != 0 || ((sim_event*)signal)->signaled) return SIM_ZE_ERROR;
  return sim_record((sim_event*)signal, (sim_stream*)list);
}
int zeCommandListAppendMemoryCopy(void* list, void* to, const void* from, size_t len, void* signal,
                                  uint32_t count, void** waits) {
  (void)waits;
  if (signal != NULL || count != 0 || !sim_ze_knows((char*)to, len) ||
      !sim_ze_knows((const char*)from, len))
    return SIM_ZE_ERROR;
  return sim_start_copy((sim_stream*)list, (char*)to, len, (char*)from, len, len, 1);
}
typedef struct {
  uint32_t x, y, z, width, height, depth;
} sim_ze_region;
int zeCommandListAppendMemoryCopyRegion(void* list, void* to, const void* to_region,
                                        uint32_t to_pitch, uint32_t to_slice, const void* from,
                                        const void* from_region, uint32_t from_pitch,
                                        uint32_t from_slice, void* signal, uint32_t count,
                                        void** waits) {
  const sim_ze_region* region = (const sim_ze_region*)to_region;
  (void)to_slice;
  (void)from_slice;
  (void)waits;
  if (memcmp(to_region, from_region, sizeof *region) != 0 ||
      region->x + region->y + region->z != 0 || region->depth != 1 || signal != NULL ||
      count != 0 || !sim_ze_knows((char*)to, 1) || !sim_ze_knows((const char*)from, 1))
    return SIM_ZE_ERROR;
  return sim_start_copy((sim_stream*)list, (char*)to, to_pitch, (char*)from, from_pitch,
                        region->width, region->height);
}

#ifdef __cplusplus
}
#endif
#endif
