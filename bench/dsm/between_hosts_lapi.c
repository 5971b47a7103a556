// between_hosts_lapi: see between_hosts.h; by LAPI_Put and LAPI_Get.
#define _POSIX_C_SOURCE 200112L
#include <lapi.h>

#include "between_hosts.h"

static lapi_handle_t handle;
static long long window[slots];
static void* windows[2];

static void check(int code) {
  char text[LAPI_MAX_ERR_STRING];
  if (code == LAPI_SUCCESS) return;
  LAPI_Msg_string(code, text);
  fprintf(stderr, "between_hosts_lapi: %s\n", text);
  exit(1);
}

static void put(int slot, const long long* value) {
  check(LAPI_Put(handle, 1, sizeof *value, (long long*)windows[1] + slot, (void*)value, NULL, NULL,
                 NULL));
}

static void finish(void) { check(LAPI_Fence(handle)); }

static void get(int slot, long long* value) {
  lapi_cntr_t done;
  check(LAPI_Setcntr(handle, &done, 0));
  check(LAPI_Get(handle, 1, sizeof *value, (long long*)windows[1] + slot, value, NULL, &done));
  check(LAPI_Waitcntr(handle, &done, 1, NULL));
}

static void meet(void) { check(LAPI_Gfence(handle)); }

int main(int argc, char** argv) {
  lapi_info_t info;
  struct between way = {0, put, finish, get, meet, window};
  memset(&info, 0, sizeof info);
  check(LAPI_Init(&handle, &info));
  check(LAPI_Qenv(handle, TASK_ID, &way.task));
  check(LAPI_Address_init(handle, window, windows));
  int status = measure_between(&way, argc, argv);
  check(LAPI_Gfence(handle));
  check(LAPI_Term(handle));
  return status;
}
