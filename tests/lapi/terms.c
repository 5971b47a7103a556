// RANKS: none
// Programs that a task starts inherit no descriptor of LAPI. A context that a handler of another
// one uses last is deleted after LAPI_Term, with its threads.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "check.h"

enum { most_descriptors = 1024 };

static int inheritable(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

static void check_descriptors(const char* before) {
  for (int descriptor = 3; descriptor < most_descriptors; ++descriptor) {
    char path[64], target[256] = {0};
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    if (!inheritable(descriptor) || before[descriptor]) continue;
    if (readlink(path, target, sizeof target - 1) < 0) continue;
    CHECK(0, "children inherit descriptor %d, %s", descriptor, target);
  }
}

// That of the job's memory is inherited until LAPI_Init.
static void note_descriptors(char* before) {
  const char* place = getenv("SHIMA_LAPI");
  int of_job = -1;
  if (place != NULL) sscanf(place, "fd=%d", &of_job);
  for (int descriptor = 0; descriptor < most_descriptors; ++descriptor)
    before[descriptor] = (char)(inheritable(descriptor) && descriptor != of_job);
}

static lapi_handle_t second;
static lapi_cntr_t held;
static _Atomic int is_inside, has_returned;

static void on_complete(lapi_handle_t* handle, void* info) {
  (void)handle, (void)info;
  is_inside = 1;
  LAPI_Waitcntr(second, &held, 1, NULL);
  has_returned = 1;
}

static void* on_header(lapi_handle_t* handle, void* uhdr, uint* uhdr_len, ulong* msg_len,
                       compl_hndlr_t** completion, void** user_info) {
  (void)handle, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)user_info;
  *completion = on_complete;
  return NULL;
}

static int threads(void) {
  int count = 0;
  DIR* all = opendir("/proc/self/task");
  for (struct dirent* one; (one = readdir(all)) != NULL;) count += one->d_name[0] != '.';
  closedir(all);
  return count;
}

static void end_second_context(void) {
  lapi_info_t info = {0};
  OK(LAPI_Addr_set(hndl, (void*)on_header, 1));
  OK(LAPI_Gfence(hndl));
  // The completion thread starts with its first handler.
  const int most_threads = threads() + 1;
  OK(LAPI_Init(&second, &info));
  OK(LAPI_Gfence(second));
  OK(LAPI_Amsend(hndl, (unsigned)task_id, (void*)1, NULL, 0, NULL, 0, NULL, NULL, NULL));
  while (!is_inside) usleep(1000);
  OK(LAPI_Term(second));
  __atomic_store_n(&held.value, 1, __ATOMIC_SEQ_CST);  // the handler looks at it every second
  for (int i = 0; i < 5000 && (!has_returned || threads() > most_threads); ++i) usleep(1000);
  CHECK(has_returned, "the handler waits");
  CHECK(threads() <= most_threads, "%d threads instead of %d", threads(), most_threads);
}

int main(void) {
  static char before[most_descriptors];
  note_descriptors(before);
  begin();
  OK(LAPI_Gfence(hndl));
  if (getenv("SHIMA_TRANSPORT") == NULL) check_descriptors(before);  // UCX has its own
  end_second_context();
  end();
  printf("task %d: ok\n", task_id);
  return 0;
}
