// delegated_overlap: compares transfers by a delegatee with transfers by the task's own thread.
//
//   shima pvas run -n 3 delegated_overlap FILE [direct]
//
// Tasks 1 and 2 each have 32 MiB to write, in calls of 2 MiB, and a computation that takes about as
// long: first each alone, then both at once, with the writing done by a thread of the task or by
// task 0, which both share. Task 1 prints a JSON object per way: the minimum of some rounds, from
// when both have begun until both have ended. `direct`: without the page cache.
#include "tasks.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "shima/delegate.h"

enum { rounds = 15, call_bytes = 2 << 20, calls = 16 };
enum part { transfer = 1, compute = 2, both = 3 };
enum { op_stop = DELEGATE_FIRST_OPERATION };

struct meeting {
  _Atomic int arrived, left;
};

static struct meeting* meeting;
static delegate_seat* seat;
static unsigned char* data;
static int file, file_there, self;
static long loops;

static void meet(void) {
  const int turn = atomic_load(&meeting->left);
  if (atomic_fetch_add(&meeting->arrived, 1) == 1) {
    atomic_store(&meeting->arrived, 0);
    atomic_fetch_add(&meeting->left, 1);
  }
  while (atomic_load(&meeting->left) == turn) usleep(50);
}

static int64_t place_of(int call) { return ((int64_t)(self - 1) * calls + call) * call_bytes; }

static void* write_by_hand(void* unused) {
  for (int i = 0; i < calls; i++)
    if (pwrite(file, data, call_bytes, place_of(i)) != call_bytes) die("pwrite");
  return unused;
}

static void calculate(long count) {
  volatile double x = 1;
  for (long i = 0; i < count; i++) x = x * 1.0000001 + 1e-9;
}

static void with_thread(enum part part) {
  pthread_t thread;
  if (part & transfer) pthread_create(&thread, NULL, write_by_hand, NULL);
  if (part & compute) calculate(loops);
  if (part & transfer) pthread_join(thread, NULL);
}

static void with_delegatee(enum part part) {
  uint64_t numbers[calls];
  for (int i = 0; (part & transfer) && i < calls; i++) {
    const delegate_request request = {
        DELEGATE_FILE_WRITE, {file_there, place_of(i), 0}, data, call_bytes, DELEGATE_OUT};
    if (delegate_start(seat, &request, &numbers[i])) die("start");
  }
  if (part & compute) calculate(loops);
  for (int i = 0; (part & transfer) && i < calls; i++)
    if (delegate_wait(seat, numbers[i]) != call_bytes) die("wait");
}

static double measure(void (*run)(enum part), enum part part) {
  double least = 1e18;
  for (int round = 0; round < rounds; round++) {
    meet();
    const double begun = now_ns();
    run(part);
    meet();
    const double ns = now_ns() - begun;
    if (ns < least) least = ns;
  }
  return least / 1e6;
}

static void report(const char* way, void (*run)(enum part)) {
  const double alone = measure(run, transfer), computing = measure(run, compute);
  const double together = measure(run, both);
  if (self != 1) return;
  printf(
      "{\"program\":\"delegated_overlap\",\"way\":\"%s\",\"transfer_ms\":%.2f,\"compute_ms\":%.2f,"
      "\"both_ms\":%.2f,\"ratio\":%.3f}\n",
      way, alone, computing, together, together / (alone > computing ? alone : computing));
}

static int64_t do_stop(void* desk, const delegate_job* job) {
  (void)job;
  delegate_stop(desk);
  return 0;
}

static void serve(void) {
  static struct meeting shared;
  delegate_desk* desk;
  if (delegate_open("disk", NULL, &desk) || delegate_offer(desk, op_stop, do_stop, desk) ||
      pvas_export("meeting", &shared, sizeof shared) || pvas_export("file", &file, sizeof file))
    die("opening");
  if (delegate_serve(desk, -1) < 0) die("serve");
  delegate_close(desk);
}

static void request(void) {
  void *address, *number;
  data = aligned_alloc(4096, call_bytes);
  memset(data, self, call_bytes);
  if (delegate_join("disk", 10000, NULL, &seat) ||
      pvas_import("meeting", 10000, &address, NULL, NULL) ||
      pvas_import("file", 10000, &number, NULL, NULL))
    die("join");
  meeting = address;
  file_there = *(int*)number;
  loops = 1000000;
  const double alone = measure(with_thread, transfer), computing = measure(with_thread, compute);
  loops = (long)((double)loops * alone / computing);
  report("threads", with_thread);
  report("delegatee", with_delegatee);
  meet();
  const delegate_request end = {.operation = op_stop};
  if (self == 1 && delegate_call(seat, &end) < 0) die("stop");
  delegate_leave(seat);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  self = pvas_self();
  file = open(argv[1], O_RDWR | O_CREAT | (argc > 2 ? O_DIRECT : 0), 0600);
  if (self < 0 || file < 0) die("not a task, or no file");
  if (self == 0)
    serve();
  else
    request();
  return 0;
}
