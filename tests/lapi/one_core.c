// RANKS: none
// Two tasks that share a core, while others are free: a task that polls in a loop gives the core to
// the other one soon.
#define _GNU_SOURCE
#include <sched.h>

#include "check.h"

enum { rounds = 200, most_looks = 500 };
static lapi_cntr_t arrived;

// All tasks to the first core that they may use. False if there is only one.
static int share_core(void) {
  cpu_set_t cores, first;
  CPU_ZERO(&first);
  CHECK(sched_getaffinity(0, sizeof cores, &cores) == 0, "asking for the cores");
  int core = 0;
  while (!CPU_ISSET(core, &cores)) ++core;
  CPU_SET(core, &first);
  CHECK(sched_setaffinity(0, sizeof first, &first) == 0, "moving to core %d", core);
  return CPU_COUNT(&cores) > 1;
}

int main(void) {
  begin();
  void** counters = calloc((size_t)num_tasks, sizeof *counters);
  OK(LAPI_Address_init(hndl, &arrived, counters));
  const int has_more = share_core();
  const unsigned other = (unsigned)(1 - task_id);
  long looks = 0;
  OK(LAPI_Gfence(hndl));
  for (int round = 0; round < rounds; ++round) {
    int count = 0;
    if (round % 2 == task_id) {
      OK(LAPI_Put(hndl, other, 0, NULL, NULL, counters[other], NULL, NULL));
      continue;
    }
    for (; count < 1; ++looks) {
      OK(LAPI_Probe(hndl));
      OK(LAPI_Getcntr(hndl, &arrived, &count));
    }
    OK(LAPI_Waitcntr(hndl, &arrived, 1, NULL));
  }
  const long waits = rounds / 2;
  if (has_more) CHECK(looks < waits * most_looks, "%ld looks for %ld messages", looks, waits);
  end();
  return 0;
}
