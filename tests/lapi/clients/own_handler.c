// RANKS: none
// Handlers named by their addresses in the sender, which are not exchanged: the handler that runs
// is the target's, with the target's variables, also where tasks share one address space.
#include "check.h"

static int calls, completions;

static void complete(lapi_handle_t* handle, void* info) {
  CHECK(*handle == hndl && info == &calls, "the information of another task");
  __atomic_add_fetch(&completions, 1, __ATOMIC_SEQ_CST);
}

static void* take(lapi_handle_t* handle, void* header, uint* header_len, ulong* len,
                  compl_hndlr_t** handler, void** info) {
  CHECK(*handle == hndl && *header_len == sizeof(int) && *len == 0, "%u bytes", *header_len);
  CHECK(*(int*)header == task_id, "a message for task %d", *(int*)header);
  __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
  *handler = complete;
  *info = &calls;
  return NULL;
}

int main(void) {
  lapi_cntr_t done;
  begin();
  OK(LAPI_Setcntr(hndl, &done, 0));
  OK(LAPI_Gfence(hndl));
  for (int round = 0; round < 50; ++round)
    for (int task = 0; task < num_tasks; ++task)
      OK(LAPI_Amsend(hndl, (uint)task, (void*)take, &task, sizeof task, NULL, 0, NULL, NULL,
                     &done));
  OK(LAPI_Waitcntr(hndl, &done, 50 * num_tasks, NULL));
  OK(LAPI_Gfence(hndl));
  CHECK(calls == 50 * num_tasks && completions == calls, "%d calls, %d", calls, completions);
  end();
  return 0;
}
