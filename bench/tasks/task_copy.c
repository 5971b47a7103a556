// task_copy: reading another task's memory, in one space by its address and between processes by
// process_vm_readv.
//
//   shima pvas run -n 2 task_copy          two tasks of a space: memcpy
//   task_copy                              two processes: process_vm_readv
//
// The owner is on one core and the reader on another. 'kept': the owner has written the data once,
// so that it gets into the reader's cache; 'new': the owner writes it before each copy. The reader
// prints a JSON object per figure: the median and the minimum of single copies. The bytes read are
// compared.
#include "tasks.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { largest = 1 << 20, most_copies = 2000 };
static const size_t sizes[] = {16 << 10, largest};

// Shared by the two: the owner fills the data with the number of the turn.
struct meeting {
  _Atomic int wanted, filled;  // turns; wanted < 0: the end
  unsigned char* data;
  int owner;
};

static void own(struct meeting* meeting) {
  pin(0);
  unsigned char* data = aligned_alloc(4096, largest);
  memset(data, 0, largest);
  meeting->data = data;
  meeting->owner = getpid();
  atomic_store(&meeting->filled, 0);
  for (int turn = 0; turn >= 0; turn = atomic_load(&meeting->wanted)) {
    if (turn == atomic_load(&meeting->filled)) {
      sched_yield();
      continue;
    }
    memset(data, turn & 0xff, largest);
    atomic_store(&meeting->filled, turn);
  }
}

static void fetch(const struct meeting* meeting, int is_task, unsigned char* to, size_t bytes) {
  if (is_task) {
    memcpy(to, meeting->data, bytes);
    return;
  }
  struct iovec here = {to, bytes}, there = {meeting->data, bytes};
  if (process_vm_readv(meeting->owner, &here, 1, &there, 1, 0) != (ssize_t)bytes)
    die("process_vm_readv");
}

static void have_filled(struct meeting* meeting, int turn) {
  atomic_store(&meeting->wanted, turn);
  while (atomic_load(&meeting->filled) != turn) sched_yield();
}

static void measure(struct meeting* meeting, int is_task, size_t bytes, int is_new) {
  static int turn;
  double ns[most_copies];
  unsigned char* to = aligned_alloc(4096, largest);
  int wrong = 0, copies = bytes < largest ? most_copies : most_copies / 10;
  memset(to, 1, largest);
  have_filled(meeting, ++turn);
  for (int i = 0; i < copies + 10; i++) {
    if (is_new) have_filled(meeting, ++turn);
    double begun = now_ns();
    fetch(meeting, is_task, to, bytes);
    ns[i < 10 ? 0 : i - 10] = now_ns() - begun;  // the first ones take page faults
    wrong += to[0] != (turn & 0xff) || to[bytes - 1] != (turn & 0xff);
  }
  double median = median_of(ns, copies);
  printf(
      "{\"program\":\"task_copy\",\"way\":\"%s\",\"data\":\"%s\",\"bytes\":%zu,\"ns\":%.1f,"
      "\"least_ns\":%.1f,\"wrong_bytes\":%d}\n",
      is_task ? "one space" : "processes", is_new ? "new" : "kept", bytes, median, ns[0], wrong);
  free(to);
}

static void read_all(struct meeting* meeting, int is_task) {
  pin(1);
  while (atomic_load(&meeting->filled) < 0) sched_yield();
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int is_new = 0; is_new < 2; is_new++) measure(meeting, is_task, sizes[i], is_new);
  atomic_store(&meeting->wanted, -1);
}

int main(void) {
  static struct meeting mine = {.filled = -1};
  void* address = NULL;
  int self = pvas_self();
  if (count_cores() < 2) die("there are no two cores");
  if (self == 0) {
    if (pvas_export("meeting", &mine, sizeof mine)) die("export");
    own(&mine);
  } else if (self > 0) {
    if (pvas_import("meeting", 10000, &address, NULL, NULL)) die("import");
    read_all(address, 1);
  } else {
    struct meeting* meeting =
        mmap(NULL, sizeof mine, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *meeting = mine;
    pid_t owner = fork();
    if (owner == 0) own(meeting), _exit(0);
    read_all(meeting, 0);
    waitpid(owner, NULL, 0);
  }
  return 0;
}
