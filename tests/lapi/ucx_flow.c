// RANKS: none
// Messages wait at their sender while a handler is slow, and a task whose partner has
// left uses no processor time.
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { most_growth_kib = 400000 };  // what has been freed is kept for a while
#else
enum { most_growth_kib = 40000 };
#endif
enum { message_bytes = 800, messages = 100000 };

static double seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static long peak_kib(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

static void* slow_handler(lapi_handle_t* handle, void* uhdr, uint* uhdr_len, ulong* msg_len,
                          compl_hndlr_t** completion, void** user_info) {
  (void)handle, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)user_info;
  for (const double until = seconds(CLOCK_MONOTONIC) + 10e-6; seconds(CLOCK_MONOTONIC) < until;) {
  }
  *completion = NULL;
  return NULL;
}

static void send_to_slow_task(void) {
  static char header[message_bytes];
  OK(LAPI_Addr_set(hndl, (void*)slow_handler, 1));
  OK(LAPI_Gfence(hndl));
  const long before_kib = peak_kib();
  if (task_id == 1)
    for (int i = 0; i < messages; ++i)
      OK(LAPI_Amsend(hndl, 0, (void*)1, header, message_bytes, NULL, 0, NULL, NULL, NULL));
  OK(LAPI_Gfence(hndl));
  const long growth_kib = peak_kib() - before_kib;
  printf("task %d: %ld KiB more while a handler is slow\n", task_id, growth_kib);
  CHECK(task_id != 0 || growth_kib < most_growth_kib, "%ld KiB for waiting messages", growth_kib);
}

static void stay_behind(void) {
  usleep(500000);  // the other one leaves
  const double before_s = seconds(CLOCK_PROCESS_CPUTIME_ID);
  usleep(1000000);
  const double used_s = seconds(CLOCK_PROCESS_CPUTIME_ID) - before_s;
  printf("task 0: %.3f s of processor time in 1 s\n", used_s);
  CHECK(used_s < 0.1, "%.3f s of processor time", used_s);
}

int main(void) {
  begin();
  send_to_slow_task();
  if (task_id == 0) stay_behind();
  OK(LAPI_Term(hndl));
  return 0;
}
