// RANKS: none
// Put, Get, their vectors, Rmw and Xfer between tasks: every kind of memory, sizes from 0 to 4 MiB,
// and the three counters.
#include "check.h"

enum { most = 4 << 20, sizes_count = 12 };
static const size_t sizes[sizes_count] = {0,    1,     8,     100,   2048,    2049,
                                          4096, 16383, 16384, 65536, 1 << 20, most};

static unsigned char static_memory[most];
static lapi_cntr_t static_counter;
static int shared_int;
static long long shared_long;

static void wait_for(lapi_cntr_t* counter, int value) {
  int left = -1;
  OK(LAPI_Waitcntr(hndl, counter, value, &left));
  CHECK(left >= 0, "a counter has %d left after waiting for %d", left, value);
}

// Every task writes to its right neighbour and reads that back.
static void put_and_get(unsigned char** windows, lapi_cntr_t** counters) {
  const unsigned right = (unsigned)((task_id + 1) % num_tasks);
  const int left_seed = (task_id + num_tasks - 1) % num_tasks;
  unsigned char *origin = malloc(most), *back = malloc(most);
  lapi_cntr_t org, cmpl;
  OK(LAPI_Setcntr(hndl, &org, 0));
  OK(LAPI_Setcntr(hndl, &cmpl, 0));
  for (int i = 0; i < sizes_count; ++i) {
    const size_t len = sizes[i];
    fill(origin, len, task_id + i);
    OK(LAPI_Put(hndl, right, len, windows[right], origin, counters[right], &org, &cmpl));
    wait_for(&org, 1);
    wait_for(&cmpl, 1);
    wait_for(counters[task_id], 1);
    check_filled(windows[task_id], len, left_seed + i, "put");
    memset(back, 0, most);
    OK(LAPI_Get(hndl, right, len, windows[right], back, counters[right], &org));
    wait_for(&org, 1);
    wait_for(counters[task_id], 1);
    check_filled(back, len, task_id + i, "get");
    OK(LAPI_Gfence(hndl));
  }
  free(origin);
  free(back);
}

static void vectors(unsigned char** windows) {
  const unsigned right = (unsigned)((task_id + 1) % num_tasks);
  enum { count = 300 };
  static unsigned char origin[count * 40], back[count * 40];
  static void *org_info[count], *tgt_info[count], *back_info[count];
  static ulong lens[count];
  for (int i = 0; i < count; ++i) {
    org_info[i] = origin + i * 40;
    back_info[i] = back + i * 40;
    tgt_info[i] = windows[right] + i * 50;
    lens[i] = (ulong)(i % 41);
  }
  fill(origin, sizeof origin, task_id);
  lapi_vec_t org = {LAPI_GEN_IOVECTOR, count, org_info, lens};
  lapi_vec_t tgt = {LAPI_GEN_IOVECTOR, count, tgt_info, lens};
  lapi_vec_t into = {LAPI_GEN_IOVECTOR, count, back_info, lens};
  lapi_cntr_t done;
  OK(LAPI_Setcntr(hndl, &done, 0));
  OK(LAPI_Putv(hndl, right, &tgt, &org, NULL, NULL, &done));
  wait_for(&done, 1);
  OK(LAPI_Getv(hndl, right, &tgt, &into, NULL, &done));
  wait_for(&done, 1);
  for (int i = 0; i < count; ++i)
    CHECK(memcmp(org_info[i], back_info[i], lens[i]) == 0, "piece %d differs", i);

  void* org_strided[3] = {origin, (void*)16, (void*)32};
  void* tgt_strided[3] = {windows[right], (void*)16, (void*)100};
  void* back_strided[3] = {back, (void*)16, (void*)16};
  lapi_vec_t from = {LAPI_GEN_STRIDED_XFER, 200, org_strided, NULL};
  lapi_vec_t there = {LAPI_GEN_STRIDED_XFER, 200, tgt_strided, NULL};
  lapi_vec_t here = {LAPI_GEN_STRIDED_XFER, 200, back_strided, NULL};
  OK(LAPI_Gfence(hndl));
  OK(LAPI_Putv(hndl, right, &there, &from, NULL, NULL, &done));
  wait_for(&done, 1);
  OK(LAPI_Getv(hndl, right, &there, &here, NULL, &done));
  wait_for(&done, 1);
  for (int i = 0; i < 200; ++i)
    CHECK(memcmp(origin + i * 32, back + i * 16, 16) == 0, "block %d differs", i);
  OK(LAPI_Gfence(hndl));
}

static void atomics(void** ints, void** longs) {
  enum { times = 1000 };
  lapi_cntr_t done;
  int one = 1, before = -1;
  long long bit = 1LL << (task_id + 33), old = -1;
  OK(LAPI_Setcntr(hndl, &done, 0));
  for (int i = 0; i < times; ++i) {
    OK(LAPI_Rmw(hndl, FETCH_AND_ADD, 0, ints[0], &one, &before, &done));
    wait_for(&done, 1);
    CHECK(before >= i && before < times * num_tasks, "the value before is %d", before);
  }
  OK(LAPI_Rmw64(hndl, FETCH_AND_OR, 0, longs[0], &bit, &old, &done));
  wait_for(&done, 1);
  OK(LAPI_Gfence(hndl));
  if (task_id == 0) {
    CHECK(shared_int == times * num_tasks, "the sum is %d", shared_int);
    CHECK(shared_long >> 33 == (1LL << num_tasks) - 1, "the bits are %llx", shared_long);
  }
  OK(LAPI_Gfence(hndl));
  int swap[2] = {0, 5}, swapped = -1;
  int* const own = ints[task_id];
  *own = 0;
  OK(LAPI_Rmw(hndl, COMPARE_AND_SWAP, (unsigned)task_id, own, swap, &swapped, &done));
  wait_for(&done, 1);
  CHECK(swapped == 1 && *own == 5, "swapped %d, value %d", swapped, *own);
  OK(LAPI_Rmw(hndl, COMPARE_AND_SWAP, (unsigned)task_id, own, swap, &swapped, &done));
  wait_for(&done, 1);
  CHECK(swapped == 0 && *own == 5, "swapped %d, value %d", swapped, *own);
  OK(LAPI_Rmw(hndl, SWAP, (unsigned)task_id, own, swap + 1, NULL, NULL));
  OK(LAPI_Gfence(hndl));
}

static int sent_calls;
static void on_sent(lapi_handle_t* handle, void* info, lapi_sh_info_t* about) {
  CHECK(*handle == hndl && info == &sent_calls && about->reason == LAPI_SUCCESS, "send handler");
  __atomic_add_fetch(&sent_calls, 1, __ATOMIC_SEQ_CST);
}

static int arrived_calls;
static void on_arrived(lapi_handle_t* handle, void* info) {
  CHECK(*handle == hndl && info == &arrived_calls, "arrival handler");
  __atomic_add_fetch(&arrived_calls, 1, __ATOMIC_SEQ_CST);
}

static void by_xfer(unsigned char** windows, void** ints) {
  const unsigned right = (unsigned)((task_id + 1) % num_tasks);
  unsigned char origin[300], back[300] = {0};
  lapi_cntr_t done;
  int one = 1, before = -1;
  fill(origin, sizeof origin, task_id + 50);
  OK(LAPI_Setcntr(hndl, &done, 0));
  lapi_xfer_t x;
  memset(&x, 0, sizeof x);
  x.Put.Xfer_type = LAPI_PUT_XFER;
  x.Put.tgt = right;
  x.Put.tgt_addr = (lapi_long_t)windows[right];
  x.Put.org_addr = origin;
  x.Put.len = sizeof origin;
  x.Put.shdlr = on_sent;
  x.Put.sinfo = &sent_calls;
  x.Put.cmpl_cntr = &done;
  OK(LAPI_Xfer(hndl, &x));
  wait_for(&done, 1);
  memset(&x, 0, sizeof x);
  x.Get.Xfer_type = LAPI_GET_XFER;
  x.Get.tgt = right;
  x.Get.tgt_addr = (lapi_long_t)windows[right];
  x.Get.org_addr = back;
  x.Get.len = sizeof back;
  x.Get.chndlr = on_arrived;
  x.Get.cinfo = &arrived_calls;
  OK(LAPI_Xfer(hndl, &x));
  while (__atomic_load_n(&arrived_calls, __ATOMIC_SEQ_CST) == 0) OK(LAPI_Probe(hndl));
  check_filled(back, sizeof back, task_id + 50, "Xfer");
  memset(&x, 0, sizeof x);
  x.Rmw.Xfer_type = LAPI_RMW_XFER;
  x.Rmw.op = FETCH_AND_ADD;
  x.Rmw.tgt = right;
  x.Rmw.size = 32;
  x.Rmw.tgt_var = (lapi_long_t)ints[right];
  x.Rmw.in_val = &one;
  x.Rmw.prev_tgt_val = &before;
  x.Rmw.shdlr = on_sent;
  x.Rmw.sinfo = &sent_calls;
  OK(LAPI_Xfer(hndl, &x));
  while (__atomic_load_n(&sent_calls, __ATOMIC_SEQ_CST) < 2) OK(LAPI_Probe(hndl));
  CHECK(before == 5, "the value before is %d", before);
  x.Rmw.size = 16;
  FAILS(LAPI_ERR_OP_SZ, "16 bits", LAPI_Xfer(hndl, &x));
  OK(LAPI_Gfence(hndl));
}

int main(void) {
  begin();
  void** windows = calloc((size_t)num_tasks, sizeof *windows);
  void** counters = calloc((size_t)num_tasks, sizeof *counters);
  void** ints = calloc((size_t)num_tasks, sizeof *ints);
  void** longs = calloc((size_t)num_tasks, sizeof *longs);
  lapi_cntr_t on_stack;
  OK(LAPI_Setcntr(hndl, &on_stack, 0));
  OK(LAPI_Address_init(hndl, static_memory, windows));
  OK(LAPI_Address_init(hndl, &static_counter, counters));
  OK(LAPI_Address_init(hndl, &shared_int, ints));
  OK(LAPI_Address_init(hndl, &shared_long, longs));
  put_and_get((unsigned char**)windows, (lapi_cntr_t**)counters);
  unsigned char* heap = malloc(most);
  OK(LAPI_Address_init(hndl, heap, windows));
  OK(LAPI_Address_init(hndl, &on_stack, counters));
  put_and_get((unsigned char**)windows, (lapi_cntr_t**)counters);
  vectors((unsigned char**)windows);
  atomics(ints, longs);
  by_xfer((unsigned char**)windows, ints);
  end();
  printf("task %d of %d is done\n", task_id, num_tasks);
  return 0;
}
