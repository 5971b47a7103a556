// RANKS: none
// Counters in every way that the manual pages permit: one counter for many operations, values above
// 1 with a rest, Setcntr in between (also below zero), counters of targets that many tasks make
// grow, loops over Getcntr, Probe and Msgpoll without interrupts, and Waitcntr without a place for
// the rest.
#include <sched.h>

#include "check.h"

enum { many = 200, len = 64 };
static unsigned char window[many * len];
static lapi_cntr_t arrived;
static void **windows, **counters;

static unsigned right_task(void) { return (unsigned)((task_id + 1) % num_tasks); }
static int left_task(void) { return (task_id + num_tasks - 1) % num_tasks; }

static unsigned char* slot(int task, int i) { return (unsigned char*)windows[task] + i * len; }

// org_cntr and cmpl_cntr are the same counter.
static void one_for_all(void) {
  unsigned char data[many][len];
  lapi_cntr_t both;
  int rest = -1, value = -1;
  OK(LAPI_Setcntr(hndl, &both, 0));
  for (int i = 0; i < many; ++i) {
    fill(data[i], len, i + task_id);
    OK(LAPI_Put(hndl, right_task(), len, slot((int)right_task(), i), data[i],
                counters[right_task()], &both, &both));
  }
  OK(LAPI_Waitcntr(hndl, &both, many, NULL));
  OK(LAPI_Waitcntr(hndl, &both, many / 2, &rest));
  CHECK(rest >= 0 && rest <= many / 2, "the rest is %d", rest);
  OK(LAPI_Waitcntr(hndl, &both, many / 2, &rest));
  CHECK(rest == 0, "the rest is %d", rest);
  OK(LAPI_Waitcntr(hndl, &arrived, many - 7, NULL));
  OK(LAPI_Waitcntr(hndl, &arrived, 3, NULL));
  OK(LAPI_Gfence(hndl));  // all are here
  OK(LAPI_Getcntr(hndl, &arrived, &value));
  CHECK(value == 4, "%d are left", value);
  for (int i = 0; i < many; ++i)
    check_filled(window + i * len, len, i + left_task(), "one counter for all");
  OK(LAPI_Setcntr(hndl, &arrived, 0));
  OK(LAPI_Gfence(hndl));
}

static int value_of(lapi_cntr_t* counter) {
  int value = 0;
  OK(LAPI_Getcntr(hndl, counter, &value));
  return value;
}

// A counter that starts below zero needs that many more.
static void below_zero(void) {
  lapi_cntr_t done;
  int value = 0;
  OK(LAPI_Setcntr(hndl, &done, -3));
  for (int i = 0; i < 3; ++i) OK(LAPI_Put(hndl, right_task(), 0, NULL, NULL, NULL, NULL, &done));
  OK(LAPI_Fence(hndl));
  while (value_of(&done) != 0) sched_yield();
  OK(LAPI_Put(hndl, right_task(), 0, NULL, NULL, NULL, NULL, &done));
  OK(LAPI_Waitcntr(hndl, &done, 1, &value));
  CHECK(value == 0, "the rest is %d", value);
  // A value that has been set counts as if operations had made it grow.
  OK(LAPI_Setcntr(hndl, &done, 5));
  OK(LAPI_Waitcntr(hndl, &done, 2, &value));
  CHECK(value == 3, "the rest is %d", value);
  OK(LAPI_Setcntr(hndl, &done, 1));
  OK(LAPI_Waitcntr(hndl, &done, 1, &value));
  CHECK(value == 0, "the rest is %d", value);
  OK(LAPI_Gfence(hndl));
}

// All tasks make the counter of task 0 grow, by Put, Get and Amsend.
static void* on_header(lapi_handle_t* handle, void* uhdr, uint* uhdr_len, ulong* msg_len,
                       compl_hndlr_t** completion, void** user_info) {
  (void)handle, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)user_info;
  *completion = NULL;
  return NULL;
}

static void from_all(void) {
  unsigned char data[len], back[len];
  fill(data, len, task_id);
  for (int i = 0; i < 10; ++i) {
    OK(LAPI_Put(hndl, 0, len, slot(0, task_id), data, counters[0], NULL, NULL));
    OK(LAPI_Amsend(hndl, 0, (void*)3, NULL, 0, NULL, 0, counters[0], NULL, NULL));
  }
  OK(LAPI_Fence(hndl));
  lapi_cntr_t here;
  OK(LAPI_Setcntr(hndl, &here, 0));
  OK(LAPI_Get(hndl, 0, len, slot(0, task_id), back, counters[0], &here));
  OK(LAPI_Waitcntr(hndl, &here, 1, NULL));
  check_filled(back, len, task_id, "back from task 0");
  if (task_id == 0) {
    int rest = -1;
    OK(LAPI_Waitcntr(hndl, &arrived, 21 * num_tasks, &rest));
    CHECK(rest == 0, "the rest is %d", rest);
  }
  OK(LAPI_Gfence(hndl));
}

// Without interrupts: only the program's calls serve messages.
static void polling(void) {
  static unsigned char data[len];
  lapi_cntr_t done;
  int value = 0;
  OK(LAPI_Senv(hndl, INTERRUPT_SET, 0));
  OK(LAPI_Qenv(hndl, INTERRUPT_SET, &value));
  CHECK(value == 0, "INTERRUPT_SET is %d", value);
  for (int i = 0; i < 30; ++i) {
    OK(LAPI_Setcntr(hndl, &done, 0));
    fill(data, len, i);
    OK(LAPI_Put(hndl, right_task(), len, slot((int)right_task(), 0), data, counters[right_task()],
                NULL, &done));
    if (i % 3 == 0) {
      while (value_of(&arrived) < 1) {
      }
    } else if (i % 3 == 1) {
      while (__atomic_load_n((int*)&arrived, __ATOMIC_ACQUIRE) < 1) OK(LAPI_Probe(hndl));
    } else {
      lapi_msg_info_t info;
      while (value_of(&arrived) < 1) OK(LAPI_Msgpoll(hndl, 10, &info));
    }
    OK(LAPI_Waitcntr(hndl, &arrived, 1, NULL));
    check_filled(window, len, i, "polling");
    OK(LAPI_Waitcntr(hndl, &done, 1, NULL));
    OK(LAPI_Gfence(hndl));
  }
  OK(LAPI_Senv(hndl, INTERRUPT_SET, 1));
  OK(LAPI_Qenv(hndl, INTERRUPT_SET, &value));
  CHECK(value == 1, "INTERRUPT_SET is %d", value);
  OK(LAPI_Gfence(hndl));
}

int main(void) {
  begin();
  windows = calloc((size_t)num_tasks, sizeof *windows);
  counters = calloc((size_t)num_tasks, sizeof *counters);
  OK(LAPI_Addr_set(hndl, (void*)on_header, 3));
  OK(LAPI_Setcntr(hndl, &arrived, 0));
  OK(LAPI_Address_init(hndl, window, windows));
  OK(LAPI_Address_init(hndl, &arrived, counters));
  one_for_all();
  below_zero();
  from_all();
  polling();
  one_for_all();
  end();
  return 0;
}
