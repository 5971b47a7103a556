// RANKS: none
// Two tasks of which one does not receive at first (partners.py). Argument: what happens meanwhile.
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { large = 32 << 20 };
static unsigned char data[large];
static lapi_cntr_t arrived;
static lapi_cntr_t answered;

static void put_to(unsigned task, size_t len, lapi_cntr_t* counter) {
  OK(LAPI_Put(hndl, task, len, data, data, counter, NULL, NULL));
}

// The other task puts and leaves; what it has sent arrives, although sends to it fail before.
static void last(void) {
  if (task_id == 1) {
    usleep(100000);
    fill(data, 256 << 10, 1);
    put_to(0, 256 << 10, &arrived);
    return;
  }
  sleep(1);
  static long other;
  for (int i = 0; i < 6; ++i) {
    LAPI_Put(hndl, 1, sizeof other, &other, &other, NULL, NULL, NULL);
    usleep(20000);
  }
  OK(LAPI_Waitcntr(hndl, &arrived, 1, NULL));
  check_filled(data, 256 << 10, 1, "the last put");
}

// The first message of a task that leaves at once; the lower task connects.
static void first(void) {
  if (task_id == 1) {
    fill(data, 8, 3);
    put_to(0, 8, &arrived);
    return;
  }
  OK(LAPI_Waitcntr(hndl, &arrived, 1, NULL));
  check_filled(data, 8, 3, "the first put");
}

// A task computes longer than SHIMA_NODE_TIMEOUT: it is not lost.
static void busy(void) {
  if (task_id == 0) {
    fill(data, large, 2);
    put_to(1, large, &arrived);
  } else {
    sleep(4);
    OK(LAPI_Waitcntr(hndl, &arrived, 1, NULL));
    check_filled(data, large, 2, "the put");
  }
  OK(LAPI_Gfence(hndl));
}

// A child of the killed task lives on.
static void forked(void) {
  if (task_id == 1) {
    if (fork() == 0) {
      sleep(5);
      _exit(0);
    }
    usleep(100000);
    raise(SIGKILL);
  }
  time_t begun = time(NULL);
  FAILS(LAPI_ERR_TASK_LOST, "task", LAPI_Waitcntr(hndl, &arrived, 1, NULL));
  CHECK(time(NULL) - begun < 4, "the loss is known only with the end of the child");
  puts("survives");
}

static int is_cut(void) { return access("cut", F_OK) == 0; }

// The machines of the two tasks lose each other while data moves; both reach the meeting place.
static void apart(void) {
  lapi_cntr_t done;
  OK(LAPI_Setcntr(hndl, &done, 0));
  fclose(fopen("ready", "w"));
  int rc = LAPI_SUCCESS;
  while (rc == LAPI_SUCCESS) {
    rc = LAPI_Put(hndl, 1 - (unsigned)task_id, large / 32, data, data, NULL, NULL, &done);
    if (rc == LAPI_SUCCESS) rc = LAPI_Waitcntr(hndl, &done, 1, NULL);
  }
  CHECK(rc == LAPI_ERR_TASK_LOST && is_cut(), "the error %d", rc);
  fprintf(stderr, "task %d survives\n", task_id);
}

static void* put_large(void* unused) {
  usleep(50000);
  put_to(1, large, &arrived);
  return unused;
}

// One thread sleeps at the sockets when another fills the stream.
static void thread(void) {
  for (int i = 0; i < 4; ++i) {
    pthread_t other;
    if (task_id == 0) {
      pthread_create(&other, NULL, put_large, NULL);
      OK(LAPI_Waitcntr(hndl, &answered, 1, NULL));
      pthread_join(other, NULL);
    } else {
      OK(LAPI_Waitcntr(hndl, &arrived, 1, NULL));
      put_to(0, 8, &answered);
    }
  }
  OK(LAPI_Gfence(hndl));
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  begin();
  if (strcmp(what, "first") != 0) OK(LAPI_Gfence(hndl));
  if (strcmp(what, "last") == 0 || strcmp(what, "busy") == 0) OK(LAPI_Senv(hndl, INTERRUPT_SET, 0));
  if (strcmp(what, "last") == 0) last();
  if (strcmp(what, "first") == 0) first();
  if (strcmp(what, "busy") == 0) busy();
  if (strcmp(what, "thread") == 0) thread();
  if (strcmp(what, "forked") == 0) forked();
  if (strcmp(what, "apart") == 0) apart();
  OK(LAPI_Term(hndl));
  return 0;
}
