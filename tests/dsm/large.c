// RANKS: none
// Task 0 donates 8 GiB that no task touches: opening takes little memory. Then again with task 1
// unable to map it, while task 0 maps that of task 1: task 1 still obeys its protection.
#include <stdint.h>
#include <sys/resource.h>

#include "check.h"

static long resident_kib(void) {
  char line[256];
  long kib = 0;
  FILE* status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof line, status) != NULL)
    sscanf(line, "VmRSS: %ld", &kib);
  if (status != NULL) fclose(status);
  return kib;
}

int main(void) {
  const size_t large = (size_t)8 << 30;
  begin(0);
  end();
  const long before = resident_kib();
  begin(large);
  const long grown_mib = (resident_kib() - before) >> 10;
  CHECK(grown_mib < 64, "opening takes %ld MiB", grown_mib);
  end();
  const struct rlimit limit = {(rlim_t)3 << 30, (rlim_t)3 << 30};
  if (task == 1) CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "no limit");
  begin(task == 0 ? large : 4096);
  const uint64_t value = 7;
  if (task == 0) OK(dsm_protect(memory, 0, 4096, DSM_READ_ONLY));
  OK(dsm_barrier(memory));
  if (task != 0)
    FAILS(DSM_ERR_VIOLATION, "protection violation", dsm_write_b(memory, 0, 0, &value, 8));
  OK(dsm_barrier(memory));
  CHECK(task != 0 || *(uint64_t*)dsm_address(memory) == 0, "a refused write has stored");
  end();
  return 0;
}
