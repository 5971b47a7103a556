/* Memory, streams and events of simulated devices (simulated_gpu.h). */
#ifndef SHIMA_TESTS_SIMULATED_GPU_DEVICE_H
#define SHIMA_TESTS_SIMULATED_GPU_DEVICE_H

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
static int sim_copies_until_failure = -1; /* the number of copies that succeed before one fails */
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

/* Must be called first. */
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

#ifdef __cplusplus
}
#endif
#endif
