// RANKS: none
// Every call of dsm.h between all tasks: data of 0 B to 4 MiB, atomic operations, allocation,
// protection, and every error, after which nothing has moved. Argument: the way.
#include <stdatomic.h>
#include <stdint.h>

#include "check.h"

enum { most = 4 << 20, size_of_memory = most + 4096 + 10 };

static void data(void) {
  static const size_t sizes[] = {0, 1, 8, 63, 64, 100, 4096, 61440, 61441, 65536, 1 << 20, most};
  static unsigned char origin[most], back[most];
  const int right = (task + 1) % tasks, left = (task + tasks - 1) % tasks;
  const unsigned char* own = dsm_address(memory);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    const size_t len = sizes[i], at = 4096 + i % 10;
    for (size_t k = 0; k < len; ++k) origin[k] = pattern(k, task + (int)i);
    // Without a wait, UDP may lose more than a few bytes.
    if (i % 2 == 0 && (way != DSM_WAY_UDP || len <= 8)) {
      OK(dsm_write(memory, right, at, origin, len));
      memset(origin, 0, len);
      OK(dsm_fence(memory));
      for (size_t k = 0; k < len; ++k) origin[k] = pattern(k, task + (int)i);
    } else {
      OK(dsm_write_b(memory, right, at, origin, len));
    }
    OK(dsm_barrier(memory));
    for (size_t k = 0; k < len; ++k)
      CHECK(own[at + k] == pattern(k, left + (int)i), "byte %zu of %zu is %d", k, len, own[at + k]);
    memset(back, 0, len);
    OK(dsm_read(memory, right, at, back, len));
    CHECK(memcmp(back, origin, len) == 0, "%zu bytes read back differ", len);
    OK(dsm_barrier(memory));
  }
}

static void atomics(void) {
  uint32_t narrow = 0;
  uint64_t wide = 0;
  enum { rounds = 200 };
  for (int i = 0; i < rounds; ++i) {
    OK(dsm_fetch_add_32(memory, 0, 0, 1, &narrow));
    OK(dsm_fetch_add_64(memory, 0, 8, 3, NULL));
    OK(dsm_fetch_or_64(memory, 0, 16, UINT64_C(1) << (task + 40), &wide));
    OK(dsm_fetch_or_32(memory, 0, 24, 1U << task, NULL));
  }
  OK(dsm_barrier(memory));
  OK(dsm_read(memory, 0, 0, &narrow, sizeof narrow));
  CHECK(narrow == (uint32_t)(rounds * tasks), "the sum is %u", narrow);
  OK(dsm_read(memory, 0, 8, &wide, sizeof wide));
  CHECK(wide == (uint64_t)(3 * rounds * tasks), "the sum is %llu", (unsigned long long)wide);
  OK(dsm_read(memory, 0, 16, &wide, sizeof wide));
  CHECK(wide == ((UINT64_C(1) << tasks) - 1) << 40, "the bits are %llx", (unsigned long long)wide);
  // A lock, of which a plain variable beside it is increased.
  for (int i = 0; i < 20; ++i) {
    int has_lock = 0;
    while (has_lock == 0) {
      has_lock = dsm_compare_and_swap_64(memory, 0, 32, 0, (uint64_t)task + 1);
      OK(has_lock);
    }
    OK(dsm_read(memory, 0, 40, &narrow, sizeof narrow));
    ++narrow;
    OK(dsm_write_b(memory, 0, 40, &narrow, sizeof narrow));
    OK(dsm_swap_64(memory, 0, 32, 0, &wide));
    CHECK(wide == (uint64_t)task + 1, "the lock was %llu", (unsigned long long)wide);
  }
  CHECK(dsm_compare_and_swap_32(memory, task, 48, 5, 6) == 0, "swapped a value that differs");
  OK(dsm_swap_32(memory, task, 48, 5, &narrow));
  CHECK(narrow == 0 && dsm_compare_and_swap_32(memory, task, 48, 5, 6) == 1, "not swapped");
  OK(dsm_barrier(memory));
  OK(dsm_read(memory, 0, 40, &narrow, sizeof narrow));
  CHECK(narrow == (uint32_t)(20 * tasks), "the variable under the lock is %u", narrow);
  // The owner's own atomic operations count as well.
  _Atomic uint64_t* own = (_Atomic uint64_t*)((char*)dsm_address(memory) + 56);
  for (int i = 0; i < 100; ++i) {
    OK(dsm_fetch_add_64(memory, (task + 1) % tasks, 56, 1, NULL));
    atomic_fetch_add(own, 1);
  }
  OK(dsm_barrier(memory));
  CHECK(atomic_load(own) == 200, "the shared counter is %llu", (unsigned long long)*own);
}

static void addresses(void) {
  uint64_t size = 0, value = 7;
  OK(dsm_size(memory, tasks - 1, &size));
  CHECK(size == size_of_memory, "size %llu", (unsigned long long)size);
  FAILS(DSM_ERR_ADDRESS, "tasks are 0 to", dsm_size(memory, tasks, &size));
  FAILS(DSM_ERR_ADDRESS, "tasks are 0 to", dsm_read(memory, -1, 0, &value, 8));
  FAILS(DSM_ERR_ADDRESS, "tasks are 0 to", dsm_write(memory, tasks, 0, &value, 8));
  FAILS(DSM_ERR_ADDRESS, "has donated", dsm_read(memory, 0, size_of_memory - 7, &value, 8));
  FAILS(DSM_ERR_ADDRESS, "has donated", dsm_write_b(memory, 0, size_of_memory + 1, &value, 0));
  FAILS(DSM_ERR_ADDRESS, "has donated", dsm_write(memory, 0, UINT64_MAX - 3, &value, 8));
  FAILS(DSM_ERR_ADDRESS, "has donated", dsm_read(memory, 0, 16, &value, SIZE_MAX - 8));
  FAILS(DSM_ERR_ADDRESS, "has donated", dsm_fetch_add_64(memory, 0, size_of_memory - 4, 1, NULL));
  FAILS(DSM_ERR_ARGUMENT, "multiple of 8", dsm_fetch_add_64(memory, 0, 4, 1, NULL));
  FAILS(DSM_ERR_ARGUMENT, "multiple of 4", dsm_swap_32(memory, 0, 2, 1, NULL));
  FAILS(DSM_ERR_ARGUMENT, "data is NULL", dsm_read(memory, 0, 0, NULL, 8));
  FAILS(DSM_ERR_ARGUMENT, "data is NULL", dsm_write(memory, 0, 0, NULL, 8));
  FAILS(DSM_ERR_ARGUMENT, "memory is NULL", dsm_read(NULL, 0, 0, &value, 8));
  FAILS(DSM_ERR_ARGUMENT, "memory is NULL", dsm_close(NULL));
  FAILS(DSM_ERR_ARGUMENT, "size is NULL", dsm_size(memory, 0, NULL));
  FAILS(DSM_ERR_ARGUMENT, "way 9", dsm_open(&(dsm_options){.way = 9}, &memory));
  FAILS(DSM_ERR_ARGUMENT, "memory is NULL", dsm_open(NULL, NULL));
  OK(dsm_write(memory, 0, size_of_memory, NULL, 0));
  CHECK(value == 7, "a failed read has stored something");
}

// Task 0 changes what the others may do.
static void protection(void) {
  const int victim = 0;
  uint64_t at = 0, seen = 0, value = 11, before = 0;
  uint64_t* offsets = dsm_address(memory);
  OK(dsm_barrier(memory));
  if (task == victim) {
    OK(dsm_alloc(memory, 100, DSM_READ_ONLY, &at));
    offsets[10] = at;  // at 80, for the others
    *(uint64_t*)((char*)dsm_address(memory) + at) = 5;
  }
  OK(dsm_barrier(memory));
  OK(dsm_read(memory, victim, 80, &at, sizeof at));
  OK(dsm_barrier(memory));
  OK(dsm_read(memory, victim, at, &seen, 8));
  CHECK(seen == 5, "read %llu", (unsigned long long)seen);
  FAILS(DSM_ERR_VIOLATION, "protection violation", dsm_write(memory, victim, at, &value, 8));
  FAILS(DSM_ERR_VIOLATION, "protection violation",
        dsm_write_b(memory, victim, at + 127, &value, 1));
  FAILS(DSM_ERR_VIOLATION, "protection violation",
        dsm_fetch_add_64(memory, victim, at, 1, &before));
  OK(dsm_write_b(memory, victim, at + 128 + 8 * (uint64_t)task, &value, 8));
  OK(dsm_barrier(memory));
  if (task == victim) {
    CHECK(*(uint64_t*)((char*)dsm_address(memory) + at) == 5, "a refused write has stored");
    OK(dsm_protect(memory, at, 64, DSM_NONE));
  }
  OK(dsm_barrier(memory));
  FAILS(DSM_ERR_VIOLATION, "protection violation", dsm_read(memory, victim, at + 63, &seen, 1));
  FAILS(DSM_ERR_VIOLATION, "protection violation", dsm_read(memory, victim, at + 60, &seen, 8));
  OK(dsm_read(memory, victim, at + 64, &seen, 8));
  // A long range with one forbidden granule.
  static char large[1 << 20];
  FAILS(DSM_ERR_VIOLATION, "protection violation",
        dsm_read(memory, victim, at, large, sizeof large));
  OK(dsm_read(memory, victim, at + 64, large, sizeof large));
  OK(dsm_barrier(memory));
  if (task == victim) OK(dsm_protect(memory, at, 128, DSM_READ_WRITE));
  OK(dsm_barrier(memory));
  OK(dsm_write_b(memory, victim, at + 8 * (uint64_t)task, &value, 8));
  OK(dsm_barrier(memory));
  if (task == victim) OK(dsm_free(memory, at));
  OK(dsm_barrier(memory));
  FAILS(DSM_ERR_VIOLATION, "protection violation", dsm_read(memory, victim, at, &seen, 8));
  OK(dsm_barrier(memory));
  if (task == victim) OK(dsm_protect(memory, at, 128, DSM_READ_WRITE));
  OK(dsm_barrier(memory));
}

static void allocation(void) {
  uint64_t a = 0, b = 0, c = 0;
  OK(dsm_alloc(memory, 1000, DSM_READ_WRITE, &a));
  OK(dsm_alloc(memory, 64, DSM_READ_ONLY, &b));
  CHECK(a % DSM_GRANULE == 0 && b >= a + 1000, "offsets %llu, %llu", (unsigned long long)a,
        (unsigned long long)b);
  OK(dsm_free(memory, a));
  OK(dsm_alloc(memory, 1024, DSM_READ_WRITE, &c));
  CHECK(c == a, "the freed range is not used again: %llu", (unsigned long long)c);
  FAILS(DSM_ERR_NO_MEMORY, "no free range", dsm_alloc(memory, size_of_memory, 0, &a));
  FAILS(DSM_ERR_ARGUMENT, "0 bytes", dsm_alloc(memory, 0, 0, &a));
  FAILS(DSM_ERR_ARGUMENT, "protection 3", dsm_alloc(memory, 8, 3, &a));
  FAILS(DSM_ERR_ARGUMENT, "dsm_alloc has not returned it", dsm_free(memory, b + 64));
  FAILS(DSM_ERR_ARGUMENT, "dsm_alloc has not returned it", dsm_free(memory, b + 1));
  FAILS(DSM_ERR_ARGUMENT, "multiples of 64", dsm_protect(memory, 32, 64, DSM_NONE));
  FAILS(DSM_ERR_ARGUMENT, "multiples of 64", dsm_protect(memory, 64, 65, DSM_NONE));
  FAILS(DSM_ERR_ADDRESS, "has donated", dsm_protect(memory, 64, UINT64_MAX - 63, DSM_NONE));
  OK(dsm_protect(memory, size_of_memory / 64 * 64, size_of_memory % 64, DSM_NONE));
  FAILS(DSM_ERR_VIOLATION, "protection", dsm_read(memory, task, size_of_memory - 1, &a, 1));
  OK(dsm_protect(memory, size_of_memory / 64 * 64, size_of_memory % 64, DSM_READ_WRITE));
  OK(dsm_free(memory, b));
  FAILS(DSM_ERR_ARGUMENT, "dsm_alloc has not returned it", dsm_free(memory, b));
  OK(dsm_free(memory, c));
  OK(dsm_protect(memory, 0, size_of_memory, DSM_READ_WRITE));
  OK(dsm_barrier(memory));
}

// A second memory beside the first one, where only task 0 donates.
static void another(void) {
  dsm* other;
  uint64_t sum = 0, size = 1;
  OK(dsm_open(&(dsm_options){.size = task == 0 ? 8 : 0, .way = way}, &other));
  OK(dsm_fetch_add_64(other, 0, 0, 2, NULL));
  OK(dsm_barrier(other));
  OK(dsm_read(other, 0, 0, &sum, 8));
  CHECK(sum == 2 * (uint64_t)tasks, "the sum is %llu", (unsigned long long)sum);
  if (tasks > 1) {
    OK(dsm_size(other, 1, &size));
    CHECK(size == 0, "task 1 has donated %llu bytes", (unsigned long long)size);
    FAILS(DSM_ERR_ADDRESS, "donated 0 bytes", dsm_read(other, 1, 0, &sum, 1));
  }
  CHECK(task == 0 || dsm_address(other) == NULL, "an address of no memory");
  OK(dsm_close(other));
}

int main(int argc, char** argv) {
  way = argc > 1 ? atoi(argv[1]) : 0;
  begin(size_of_memory);
  uint64_t lost = 1;
  atomics();
  data();
  addresses();
  protection();
  allocation();
  another();
  OK(dsm_lost(memory, &lost));
  CHECK(lost == 0, "%llu bytes are lost", (unsigned long long)lost);
  // Different ways are an error on all.
  if (tasks > 1) {
    dsm* never = NULL;
    FAILS(DSM_ERR_ARGUMENT, "must be equal",
          dsm_open(&(dsm_options){.way = task == 0 ? DSM_WAY_TCP : DSM_WAY_LAPI}, &never));
    // So is a wrong argument of one.
    FAILS(DSM_ERR_ARGUMENT, task == 1 ? "way 9" : "task 1 has failed in checking its arguments",
          dsm_open(&(dsm_options){.way = task == 1 ? 9 : way}, &never));
    FAILS(DSM_ERR_ARGUMENT, task == 0 ? "memory is NULL" : "task 0 has failed in checking",
          dsm_open(NULL, task == 0 ? NULL : &never));
  }
  end();
  printf("task %d of %d is done\n", task, tasks);
  return 0;
}
