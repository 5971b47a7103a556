// RANKS: none
// Active messages in every way that the manual pages permit: no header and no data, data that is
// dropped, long headers, buffers that a handler allocates and its completion handler frees, chains
// of messages from completion handlers, fences and waits within them, one thread for all of them,
// messages to oneself, and counters that grow after them.
#include <pthread.h>
#include <sched.h>

#include "check.h"

enum { sizes_count = 9, chain = 300, flood = 150 };
static const size_t sizes[sizes_count] = {0, 1, 7, 2047, 2048, 2049, 16384, 100001, 1 << 20};
static void** handlers;
static int max_header;

static int load(int* value) { return __atomic_load_n(value, __ATOMIC_ACQUIRE); }
static void grow(int* value) { __atomic_add_fetch(value, 1, __ATOMIC_RELEASE); }
static void await(int* value, int least) {
  while (load(value) < least) OK(LAPI_Probe(hndl));
}

// ---- Nothing, or data that no handler wants ----
static int bare_calls, bare_completions;
static void on_bare_complete(lapi_handle_t* handle, void* info) {
  CHECK(*handle == hndl && info == &bare_calls, "the information of a bare message");
  grow(&bare_completions);
}
static void* on_bare(lapi_handle_t* handle, void* uhdr, uint* uhdr_len, ulong* msg_len,
                     compl_hndlr_t** completion, void** user_info) {
  (void)uhdr;
  CHECK(*handle == hndl && *uhdr_len == 0, "a header of %u bytes", *uhdr_len);
  *completion = *msg_len % 2 == 0 ? on_bare_complete : NULL;
  *user_info = &bare_calls;
  grow(&bare_calls);
  return NULL;
}

static void nothing_and_dropped(unsigned to) {
  unsigned char* data = malloc(1 << 20);
  lapi_cntr_t org, done;
  OK(LAPI_Setcntr(hndl, &org, 0));
  OK(LAPI_Setcntr(hndl, &done, 0));
  fill(data, 1 << 20, 1);
  for (int i = 0; i < sizes_count; ++i)
    OK(LAPI_Amsend(hndl, to, handlers[to], NULL, 0, sizes[i] == 0 ? NULL : data, sizes[i], NULL,
                   &org, &done));
  OK(LAPI_Waitcntr(hndl, &done, sizes_count, NULL));
  OK(LAPI_Waitcntr(hndl, &org, sizes_count, NULL));
  OK(LAPI_Gfence(hndl));
  await(&bare_calls, sizes_count);
  await(&bare_completions, 4);  // of the messages of even sizes
  free(data);
  OK(LAPI_Gfence(hndl));
}

// ---- Headers and data, into memory of the handler ----
struct parcel {
  size_t len;
  int seed;
  unsigned char data[];
};
static int parcels;
static pthread_t completion_thread;
static int has_thread;
static int unprotected;  // by the one thread of completion handlers

static void on_parcel_complete(lapi_handle_t* handle, void* info) {
  struct parcel* parcel = info;
  if (!has_thread) completion_thread = pthread_self();
  has_thread = 1;
  CHECK(pthread_equal(completion_thread, pthread_self()),
        "completion handlers run on several threads");
  check_filled(parcel->data, parcel->len, parcel->seed, "a parcel");
  memset(parcel, 0, sizeof *parcel);
  free(parcel);
  const int before = unprotected;
  sched_yield();
  unprotected = before + 1;
  CHECK(*handle == hndl, "the handle of a completion handler");
  grow(&parcels);
}
static void* on_parcel(lapi_handle_t* handle, void* uhdr, uint* uhdr_len, ulong* msg_len,
                       compl_hndlr_t** completion, void** user_info) {
  (void)handle;
  int seed;
  CHECK(*uhdr_len >= sizeof seed, "a header of %u bytes", *uhdr_len);
  memcpy(&seed, uhdr, sizeof seed);
  check_filled((unsigned char*)uhdr + sizeof seed, *uhdr_len - sizeof seed, seed, "a header");
  struct parcel* parcel = malloc(sizeof *parcel + *msg_len);
  parcel->len = *msg_len;
  parcel->seed = seed;
  *completion = on_parcel_complete;
  *user_info = parcel;
  return parcel->data;
}

static void parcel_post(void) {
  static lapi_cntr_t counter;
  void** counters = calloc((size_t)num_tasks, sizeof *counters);
  OK(LAPI_Setcntr(hndl, &counter, 0));
  OK(LAPI_Address_init(hndl, &counter, counters));
  unsigned char* header = malloc((size_t)max_header);
  unsigned char* data = malloc(1 << 20);
  lapi_cntr_t org, done;
  OK(LAPI_Setcntr(hndl, &org, 0));
  OK(LAPI_Setcntr(hndl, &done, 0));
  int sent = 0;
  for (int to = 0; to < num_tasks; ++to)  // also to itself
    for (int i = 0; i < flood; ++i, ++sent) {
      const int seed = i * 31 + task_id;
      const int extra = i % 5 == 0 ? max_header - 4 : i % 13;
      memcpy(header, &seed, sizeof seed);
      fill(header + sizeof seed, (size_t)extra, seed);
      const size_t size = sizes[i % sizes_count];
      fill(data, size, seed);
      OK(LAPI_Amsend(hndl, (unsigned)to, (void*)4, header,
                     (unsigned)(sizeof seed) + (unsigned)extra, data, size, counters[to], &org,
                     &done));
      OK(LAPI_Waitcntr(hndl, &org, 1, NULL));  // then header and data may change
      memset(header, 0xee, (size_t)max_header);
      memset(data, 0xee, size);
    }
  OK(LAPI_Waitcntr(hndl, &done, sent, NULL));
  OK(LAPI_Waitcntr(hndl, &counter, sent, NULL));
  CHECK(load(&parcels) >= sent, "the counter has grown before %d completion handlers",
        sent - load(&parcels));
  OK(LAPI_Gfence(hndl));
  await(&parcels, sent);
  CHECK(unprotected == sent, "%d of %d", unprotected, sent);
  free(header);
  free(data);
  free(counters);
}

// ---- Chains: completion handlers send, wait, get and fence ----
static long ball;
static void** balls;
static int passes, games_over;

static void on_ball_complete(lapi_handle_t* handle, void* info) {
  const unsigned next = (unsigned)((task_id + 1) % num_tasks);
  long count = (long)info;
  lapi_cntr_t done;
  long seen = -1;
  OK(LAPI_Setcntr(*handle, &done, 0));
  OK(LAPI_Put(*handle, next, sizeof count, balls[next], &count, NULL, NULL, &done));
  OK(LAPI_Waitcntr(*handle, &done, 1, NULL));
  OK(LAPI_Get(*handle, next, sizeof seen, balls[next], &seen, NULL, &done));
  OK(LAPI_Waitcntr(*handle, &done, 1, NULL));
  CHECK(seen == count, "the ball is %ld instead of %ld", seen, count);
  OK(LAPI_Fence(*handle));
  grow(&passes);
  if (count == chain) {
    for (unsigned i = 0; i < (unsigned)num_tasks; ++i)
      OK(LAPI_Amsend(*handle, i, (void*)6, NULL, 0, NULL, 0, NULL, NULL, NULL));
    return;
  }
  ++count;
  OK(LAPI_Amsend(*handle, next, (void*)5, &count, sizeof count, NULL, 0, NULL, &done, NULL));
  OK(LAPI_Waitcntr(*handle, &done, 1, NULL));
}
static void* on_ball(lapi_handle_t* handle, void* uhdr, uint* uhdr_len, ulong* msg_len,
                     compl_hndlr_t** completion, void** user_info) {
  (void)handle, (void)uhdr_len, (void)msg_len;
  long count;
  memcpy(&count, uhdr, sizeof count);
  *completion = on_ball_complete;
  *user_info = (void*)count;
  return NULL;
}
static void* on_game_over(lapi_handle_t* handle, void* uhdr, uint* uhdr_len, ulong* msg_len,
                          compl_hndlr_t** completion, void** user_info) {
  (void)handle, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)user_info;
  *completion = NULL;
  grow(&games_over);
  return NULL;
}

static void ring(void) {
  balls = calloc((size_t)num_tasks, sizeof *balls);
  OK(LAPI_Address_init(hndl, &ball, balls));
  long first = 1;
  OK(LAPI_Gfence(hndl));
  if (task_id == 0)
    OK(LAPI_Amsend(hndl, 0, (void*)5, &first, sizeof first, NULL, 0, NULL, NULL, NULL));
  await(&games_over, 1);
  OK(LAPI_Gfence(hndl));
  const int expected = (chain - task_id + num_tasks - 1) / num_tasks;
  CHECK(load(&passes) == expected, "%d passes instead of %d", load(&passes), expected);
}

int main(void) {
  begin();
  handlers = calloc((size_t)num_tasks, sizeof *handlers);
  OK(LAPI_Qenv(hndl, MAX_UHDR_SZ, &max_header));
  OK(LAPI_Addr_set(hndl, (void*)on_parcel, 4));
  OK(LAPI_Addr_set(hndl, (void*)on_ball, 5));
  OK(LAPI_Addr_set(hndl, (void*)on_game_over, 6));
  OK(LAPI_Address_init(hndl, (void*)on_bare, handlers));
  OK(LAPI_Gfence(hndl));
  nothing_and_dropped((unsigned)((task_id + 1) % num_tasks));
  parcel_post();
  ring();
  end();
  return 0;
}
