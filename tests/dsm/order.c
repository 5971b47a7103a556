// RANKS: none
// What a thread reads is what it has just written, while other threads of its task read the same
// place. Argument: the way.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "check.h"

static atomic_bool stopping;

static void* read_along(void* unused) {
  uint64_t value = 0;
  while (!atomic_load(&stopping)) OK(dsm_read(memory, 1, 128, &value, sizeof value));
  return unused;
}

int main(int argc, char** argv) {
  way = argc > 1 ? atoi(argv[1]) : 0;
  begin(4096);
  if (task == 0) {
    enum { readers = 2 };
    pthread_t running[readers];
    for (int i = 0; i < readers; ++i)
      CHECK(pthread_create(&running[i], NULL, read_along, NULL) == 0, "no thread");
    for (uint64_t i = 1; i <= 3000; ++i) {
      uint64_t seen = 0;
      OK(dsm_write(memory, 1, 0, &i, sizeof i));
      OK(dsm_read(memory, 1, 0, &seen, sizeof seen));
      CHECK(seen == i, "read %llu after writing %llu", (unsigned long long)seen,
            (unsigned long long)i);
    }
    atomic_store(&stopping, 1);
    for (int i = 0; i < readers; ++i) pthread_join(running[i], NULL);
  }
  end();
  return 0;
}
