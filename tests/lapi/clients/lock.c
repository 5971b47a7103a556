// RANKS: none
// A program that polls holds the lock of its context, so that its own thread alone serves messages:
// random updates of a table that is spread over the tasks, by light active messages.
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "check.h"

enum { updates = 20000, table_size = 512, by_index = 1 };
static unsigned long table[table_size];
static long received;
static pthread_t main_thread;
static lapi_thread_func_t functions;

static void* take_update(lapi_handle_t* handle, void* header, uint* header_len, ulong* len,
                         compl_hndlr_t** complete, void** info) {
  lapi_return_info_t* about = (lapi_return_info_t*)len;
  CHECK(pthread_equal(pthread_self(), main_thread), "a handler on another thread than the owner");
  CHECK(*handle == hndl && header == NULL && *header_len == 0, "a header of %u bytes", *header_len);
  CHECK(*len == sizeof table[0] && about->udata_one_pkt_ptr != NULL, "%lu bytes", *len);
  unsigned long value;
  memcpy(&value, about->udata_one_pkt_ptr, sizeof value);
  table[value % table_size] ^= value;
  ++received;
  about->ctl_flags = LAPI_BURY_MSG;
  *complete = NULL;
  *info = NULL;
  return NULL;
}

// The sequence of values is known to all tasks; each sends its part.
static unsigned long next_of(unsigned long value) {
  return value * 6364136223846793005UL + 1442695040888963407UL;
}

static int target_of(unsigned long value) { return (int)((value >> 40) % (unsigned)num_tasks); }

static void update_all(int source) {
  unsigned long value = (unsigned long)source * 77 + 1;
  lapi_am_t command;
  memset(&command, 0, sizeof command);
  command.Xfer_type = LAPI_AM_LW_XFER;
  command.hdr_hdl = by_index;
  command.udata_len = sizeof value;
  for (int i = 0; i < updates; ++i) {
    unsigned long update = value = next_of(value);
    command.tgt = (uint)target_of(update);
    command.udata = &update;
    OK(LAPI_Xfer(hndl, (lapi_xfer_t*)&command));
    update = 0;
  }
}

static void check_table(void) {
  long expected = 0;
  for (int source = 0; source < num_tasks; ++source) {
    unsigned long value = (unsigned long)source * 77 + 1;
    for (int i = 0; i < updates; ++i) {
      value = next_of(value);
      if (target_of(value) != task_id) continue;
      table[value % table_size] ^= value;
      ++expected;
    }
  }
  CHECK(received == expected, "%ld updates instead of %ld", received, expected);
  for (int i = 0; i < table_size; ++i) CHECK(table[i] == 0, "entry %d", i);
}

static void* be_refused(void* none) {
  CHECK(functions.mutex_trylock(hndl) == EBUSY, "the lock is free");
  FAILS(LAPI_ERR_BAD_PARAMETER, "does not own", functions.mutex_unlock(hndl));
  return none;
}

static void* be_owner(void* none) {
  int code;
  while ((code = functions.mutex_trylock(hndl)) == EBUSY)
    sched_yield();  // a message is being served
  OK(code);
  OK(functions.mutex_unlock(hndl));
  OK(functions.mutex_lock(hndl));
  OK(functions.mutex_unlock(hndl));
  return none;
}

static void run_thread(void* (*body)(void*)) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, body, NULL) == 0, "no thread");
  pthread_join(thread, NULL);
}

int main(void) {
  main_thread = pthread_self();
  begin();
  OK(LAPI_Addr_set(hndl, (void*)take_update, by_index));
  functions.Util_type = LAPI_GET_THREAD_FUNC;
  OK(LAPI_Util(hndl, (lapi_util_t*)&functions));
  OK(functions.mutex_lock(hndl));
  OK(functions.mutex_lock(hndl));
  run_thread(be_refused);
  OK(functions.mutex_unlock(hndl));
  run_thread(be_refused);
  OK(LAPI_Gfence(hndl));
  for (int interrupts = 1; interrupts >= 0; --interrupts) {
    OK(LAPI_Senv(hndl, INTERRUPT_SET, interrupts));
    memset(table, 0, sizeof table);
    received = 0;
    OK(LAPI_Gfence(hndl));
    update_all(task_id);
    OK(LAPI_Gfence(hndl));
    check_table();
    OK(LAPI_Gfence(hndl));
  }
  OK(functions.mutex_unlock(hndl));
  FAILS(LAPI_ERR_BAD_PARAMETER, "does not own", functions.mutex_unlock(hndl));
  run_thread(be_owner);
  // LAPI_Term releases it.
  if (task_id == 0) OK(functions.mutex_lock(hndl));
  end();
  return 0;
}
