// RANKS: none
// Random programs against a sequential model. Each thread of each task has a part of every task's
// memory to itself, where it reads, writes and computes atomically, and knows what must be there;
// in another part all add to shared counters. Between, the owner allocates and protects elsewhere.
// By UDP, data may be lost: then as much as dsm_lost counts. Arguments: the way, how many
// operations, the seed.
#include <pthread.h>
#include <stdint.h>

#include "check.h"

enum { threads = 2, part = 256 << 10, counters = 16, scratch = 1 << 20 };
static int operations = 1000;
static uint64_t seed = 1;
static size_t scratch_at;

struct work {
  int number;
  uint64_t dice;
  unsigned char* model;  // of its part in each task
  uint64_t added;
};

static uint64_t roll(struct work* work, uint64_t below) {
  work->dice ^= work->dice << 13;
  work->dice ^= work->dice >> 7;
  work->dice ^= work->dice << 17;
  return work->dice % below;
}

static size_t random_size(struct work* work) {
  const uint64_t small = roll(work, 64), kind = roll(work, 10);
  return kind < 6 ? small : kind < 9 ? roll(work, 4096) : roll(work, part / 2);
}

static void add(struct work* work, int target, uint64_t at, unsigned char* model) {
  const uint64_t value = roll(work, 1000);
  uint64_t before = 0, expected = 0;
  memcpy(&expected, model + at / 8 * 8, 8);
  const uint64_t offset =
      (uint64_t)counters * 8 + (uint64_t)(task * threads + work->number) * part + at / 8 * 8;
  OK(dsm_fetch_add_64(memory, target, offset, value, &before));
  CHECK(before == expected || way == DSM_WAY_UDP, "fetch_add at %llu gave %llx, not %llx",
        (unsigned long long)offset, (unsigned long long)before, (unsigned long long)expected);
  expected = before + value;
  memcpy(model + at / 8 * 8, &expected, 8);
  OK(dsm_fetch_add_64(memory, target, 8 * roll(work, counters), value, NULL));
  work->added += value;
}

static void one_operation(struct work* work, unsigned char* buffer) {
  const int target = (int)roll(work, (uint64_t)tasks);
  unsigned char* model = work->model + (size_t)target * part;
  size_t len = random_size(work);
  const uint64_t at = roll(work, part - len);
  const uint64_t offset =
      (uint64_t)counters * 8 + (uint64_t)(task * threads + work->number) * part + at;
  switch (roll(work, 6)) {
    case 0:
    case 1: {
      OK(dsm_read(memory, target, offset, buffer, len));
      if (way == DSM_WAY_UDP) break;
      CHECK(memcmp(buffer, model + at, len) == 0, "%zu bytes at %llu of task %d differ", len,
            (unsigned long long)offset, target);
      break;
    }
    case 2:
    case 3: {
      const int is_blocking = roll(work, 2) == 0;
      for (size_t i = 0; i < len; ++i) model[at + i] = (unsigned char)roll(work, 256);
      memcpy(buffer, model + at, len);
      OK((is_blocking ? dsm_write_b : dsm_write)(memory, target, offset, buffer, len));
      memset(buffer, 0xee, len);
      break;
    }
    case 4:
      add(work, target, at, model);
      break;
    default:
      if (roll(work, 8) == 0) OK(dsm_fence(memory));
      uint64_t range = 0;
      const int kind = (int)roll(work, 3);
      if (dsm_alloc(memory, 1 + roll(work, 1000), kind, &range) == 0) {
        if (range >= scratch_at && kind == DSM_NONE)
          FAILS(DSM_ERR_VIOLATION, "protection", dsm_read(memory, task, range, buffer, 1));
        OK(dsm_free(memory, range));
      }
  }
}

static void* run(void* argument) {
  struct work* work = argument;
  unsigned char* buffer = malloc(part);
  for (int i = 0; i < operations; ++i) one_operation(work, buffer);
  free(buffer);
  return NULL;
}

// What has arrived is the model, but for as many bytes as are lost.
static void compare(struct work* works) {
  unsigned char* buffer = malloc(part);
  uint64_t wrong = 0, lost = 0;
  OK(dsm_lost(memory, &lost));
  for (int i = 0; i < threads; ++i)
    for (int target = 0; target < tasks; ++target) {
      const unsigned char* model = works[i].model + (size_t)target * part;
      OK(dsm_read(memory, target, (uint64_t)counters * 8 + (uint64_t)(task * threads + i) * part,
                  buffer, part));
      for (int k = 0; k < part; ++k) wrong += buffer[k] != model[k];
    }
  free(buffer);
  CHECK(way == DSM_WAY_UDP || lost == 0, "%llu bytes are lost", (unsigned long long)lost);
  CHECK(way == DSM_WAY_UDP ? wrong == 0 || lost > 0 : wrong == 0, "%llu bytes are wrong",
        (unsigned long long)wrong);
}

int main(int argc, char** argv) {
  if (argc > 1) way = atoi(argv[1]);
  if (argc > 2) operations = atoi(argv[2]);
  if (argc > 3) seed = strtoull(argv[3], NULL, 10);
  begin(0);  // only to learn how many there are
  const int all = tasks;
  end();
  scratch_at = (size_t)counters * 8 + (size_t)all * threads * part;
  begin(scratch_at + scratch);
  // Allocation shall not touch the parts.
  uint64_t first = 1;
  OK(dsm_alloc(memory, scratch_at, DSM_READ_WRITE, &first));
  CHECK(first == 0, "the first range is at %llu", (unsigned long long)first);
  OK(dsm_barrier(memory));
  struct work works[threads];
  pthread_t running[threads];
  uint64_t added = 0;
  for (int i = 0; i < threads; ++i) {
    works[i] =
        (struct work){i, (seed * 1000 + (uint64_t)(task * threads + i) + 1) * 0x9E3779B97F4A7C15u,
                      calloc((size_t)tasks, part), 0};
    CHECK(pthread_create(&running[i], NULL, run, &works[i]) == 0, "no thread");
  }
  for (int i = 0; i < threads; ++i) pthread_join(running[i], NULL), added += works[i].added;
  OK(dsm_fence(memory));
  compare(works);
  // All counters together have what all have added.
  uint64_t *own = dsm_address(memory), total = 0, sums[2] = {added, 0};
  OK(dsm_barrier(memory));
  for (int i = 0; i < counters; ++i) sums[1] += own[i];
  for (int i = 0; i < 2; ++i) {
    uint64_t* at = own;
    OK(dsm_barrier(memory));
    *at = 0;
    OK(dsm_barrier(memory));
    OK(dsm_fetch_add_64(memory, 0, 0, sums[i], NULL));
    OK(dsm_barrier(memory));
    uint64_t sum = 0;
    OK(dsm_read(memory, 0, 0, &sum, 8));
    CHECK(i == 0 || sum == total, "%llu were added, and the counters have %llu",
          (unsigned long long)total, (unsigned long long)sum);
    total = sum;
  }
  for (int i = 0; i < threads; ++i) free(works[i].model);
  end();
  printf("task %d of %d is done\n", task, tasks);
  return 0;
}
