/* Simulated HIP runtime (simulated_gpu.h). Host memory is an error to it, and errors stay until
 * they are asked for. */
#ifndef SHIMA_TESTS_SIMULATED_GPU_HIP_H
#define SHIMA_TESTS_SIMULATED_GPU_HIP_H

#include "simulated_gpu/device.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
