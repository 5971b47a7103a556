/* Simulated Level Zero loader (simulated_gpu.h). Descriptions begin with their kind; copies take
 * host memory of the driver only. */
#ifndef SHIMA_TESTS_SIMULATED_GPU_LEVEL_ZERO_H
#define SHIMA_TESTS_SIMULATED_GPU_LEVEL_ZERO_H

#include "simulated_gpu/device.h"

#ifdef __cplusplus
extern "C" {
#endif

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
