/* Simulated CUDA driver (simulated_gpu.h). Contexts are 1 + device; memory of the second device
 * belongs to none. */
#ifndef SHIMA_TESTS_SIMULATED_GPU_CUDA_H
#define SHIMA_TESTS_SIMULATED_GPU_CUDA_H

#include "simulated_gpu/device.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
