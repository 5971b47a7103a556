/* A task of LAPI and of a distributed shared memory, with known numbers of calls. argv[1] is a
 * directory: task 1 waits there for "go" before the barrier.
 */
/* RANKS: none */
#include <lapi.h>
#include <shima/dsm.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  lapi_handle_t lapi;
  lapi_info_t info;
  lapi_cntr_t done;
  dsm* memory = NULL;
  const dsm_options options = {.size = 4096};
  static char target[1000], data[1000];
  static void* targets[2];
  char path[4096];
  int task = 0;
  memset(&info, 0, sizeof info);
  if (argc < 2 || LAPI_Init(&lapi, &info) != LAPI_SUCCESS) return 1;
  LAPI_Qenv(lapi, TASK_ID, &task);
  LAPI_Address_init(lapi, target, targets);
  LAPI_Setcntr(lapi, &done, 0);
  for (int i = 0; i < 3; ++i)
    LAPI_Put(lapi, (uint)(1 - task), 1000, targets[1 - task], data, NULL, NULL, &done);
  LAPI_Waitcntr(lapi, &done, 3, NULL);
  LAPI_Get(lapi, (uint)(1 - task), 500, targets[1 - task], data, NULL, &done);
  LAPI_Waitcntr(lapi, &done, 1, NULL);
  if (dsm_open(&options, &memory) != 0) return 2;
  for (int i = 0; i < 7; ++i) dsm_write(memory, 1 - task, 0, data, 100);
  for (int i = 0; i < 5; ++i) dsm_read(memory, 1 - task, 0, data, 8);
  dsm_fetch_add_64(memory, 0, 8, 1, NULL);
  snprintf(path, sizeof path, "%s/go", argv[1]);
  while (task == 1 && access(path, F_OK) != 0) usleep(10000);
  dsm_barrier(memory);
  dsm_close(memory);
  LAPI_Gfence(lapi);
  LAPI_Term(lapi);
  return 0;
}
