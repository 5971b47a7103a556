// RANKS: none
// Active messages: handlers by address and by index, headers and data of all sizes, completion
// handlers that communicate, counters after the handlers, vectors, light messages, errors.
#include <unistd.h>

#include "check.h"

enum { most = 1 << 20 };
static const size_t sizes[] = {0, 1, 100, 2048, 2049, 5000, 16384, 65536, 100000, most};
enum { sizes_count = sizeof sizes / sizeof *sizes };

struct header {
  int from;
  int number;
  size_t len;
  char filler[100];
};

static unsigned char* landing;  // of the task's own messages
static int header_calls, completion_calls, one_at_a_time;
static void** peers_counter;

static void on_complete(lapi_handle_t* handle, void* info) {
  const struct header* header = info;
  CHECK(*handle == hndl, "the handle in a completion handler");
  // One thread unless asked for more: clients share data without locks.
  CHECK(__atomic_add_fetch(&one_at_a_time, 1, __ATOMIC_SEQ_CST) == 1, "two handlers at once");
  check_filled(landing, header->len, header->number, "active message");
  // Handlers may communicate and wait.
  lapi_cntr_t done;
  int seen = -1;
  OK(LAPI_Setcntr(hndl, &done, 0));
  OK(LAPI_Get(hndl, (unsigned)header->from, sizeof seen, peers_counter[header->from], &seen, NULL,
              &done));
  OK(LAPI_Waitcntr(hndl, &done, 1, NULL));
  __atomic_add_fetch(&completion_calls, 1, __ATOMIC_SEQ_CST);
  __atomic_sub_fetch(&one_at_a_time, 1, __ATOMIC_SEQ_CST);
  free(info);
}

static void* on_header(lapi_handle_t* handle, void* uhdr, uint* uhdr_len, ulong* msg_len,
                       compl_hndlr_t** completion, void** user_info) {
  const lapi_return_info_t* about = (const lapi_return_info_t*)msg_len;
  const struct header* header = uhdr;
  CHECK(*handle == hndl && *uhdr_len == sizeof *header, "header of %u bytes", *uhdr_len);
  CHECK(*msg_len == header->len, "%lu bytes instead of %zu", *msg_len, header->len);
  CHECK(about->src == header->from, "from %d instead of %d", about->src, header->from);
  struct header* copy = malloc(sizeof *copy);
  *copy = *header;
  *user_info = copy;
  *completion = on_complete;
  ++header_calls;
  return landing;
}

static void* on_bare(lapi_handle_t* handle, void* uhdr, uint* uhdr_len, ulong* msg_len,
                     compl_hndlr_t** completion, void** user_info) {
  (void)handle, (void)uhdr, (void)user_info;
  CHECK(*uhdr_len == 0 && *msg_len == 0, "%u and %lu bytes", *uhdr_len, *msg_len);
  const unsigned right = (unsigned)((task_id + 1) % num_tasks);
  OK(LAPI_Put(hndl, right, 0, NULL, NULL, NULL, NULL, NULL));
  const int fenced = LAPI_Fence(hndl);  // without a message there is nothing to wait for
  CHECK(fenced == LAPI_ERR_IN_HANDLER || fenced == LAPI_SUCCESS, "LAPI_Fence returned %d", fenced);
  *completion = NULL;
  ++header_calls;
  return NULL;
}

static int packet_sum;
static void* on_packet(lapi_handle_t* handle, void* uhdr, uint* uhdr_len, ulong* msg_len,
                       compl_hndlr_t** completion, void** user_info) {
  (void)handle, (void)uhdr, (void)uhdr_len, (void)user_info;
  lapi_return_info_t* about = (lapi_return_info_t*)msg_len;
  CHECK(about->udata_one_pkt_ptr != NULL, "no data with a message of %lu bytes", *msg_len);
  int value;
  memcpy(&value, about->udata_one_pkt_ptr, sizeof value);
  packet_sum += value;
  about->ctl_flags = LAPI_BURY_MSG;
  *completion = NULL;
  return NULL;
}

// Takes the data from the packet if it is there, as clients do.
static void* on_either(lapi_handle_t* handle, void* uhdr, uint* uhdr_len, ulong* msg_len,
                       compl_hndlr_t** completion, void** user_info) {
  (void)handle, (void)uhdr, (void)uhdr_len;
  lapi_return_info_t* about = (lapi_return_info_t*)msg_len;
  CHECK(*user_info == NULL, "user_info is %p before the handler", *user_info);
  *user_info = landing;
  *completion = NULL;
  if (about->udata_one_pkt_ptr == NULL) return landing;
  memcpy(landing, about->udata_one_pkt_ptr, *msg_len);
  about->ctl_flags = LAPI_BURY_MSG;
  return NULL;
}

static lapi_vec_t into;
static void* into_info[3];
static ulong into_len[3] = {10, 20, 30};
static lapi_vec_t* on_vector(lapi_handle_t* handle, void* uhdr, uint* uhdr_len, ulong* lens,
                             compl_hndlr_t** completion, void** user_info) {
  (void)handle, (void)uhdr, (void)user_info;
  CHECK(*uhdr_len == 4 && lens[0] == 10 && lens[1] == 20 && lens[2] == 30, "lengths of a vector");
  *completion = NULL;
  for (int i = 0; i < 3; ++i) into_info[i] = landing + i * 100;
  into = (lapi_vec_t){LAPI_GEN_IOVECTOR, 3, into_info, into_len};
  return &into;
}

static void all_sizes(void* handler_of[]) {
  const unsigned right = (unsigned)((task_id + 1) % num_tasks);
  static lapi_cntr_t arrived;
  unsigned char* data = malloc(most);
  lapi_cntr_t org, cmpl;
  void** arrived_of = calloc((size_t)num_tasks, sizeof *arrived_of);
  OK(LAPI_Setcntr(hndl, &org, 0));
  OK(LAPI_Setcntr(hndl, &cmpl, 0));
  OK(LAPI_Setcntr(hndl, &arrived, 0));
  OK(LAPI_Address_init(hndl, &arrived, arrived_of));
  for (int i = 0; i < 2 * sizes_count; ++i) {
    const struct header header = {task_id, i, sizes[i / 2], {0}};
    fill(data, header.len, i);
    void* const handler = i % 2 == 0 ? handler_of[right] : (void*)5;  // an index
    OK(LAPI_Amsend(hndl, right, handler, (void*)&header, sizeof header, data, header.len,
                   arrived_of[right], &org, &cmpl));
    OK(LAPI_Waitcntr(hndl, &org, 1, NULL));
    memset(data, 0, header.len);
    OK(LAPI_Waitcntr(hndl, &cmpl, 1, NULL));
    OK(LAPI_Waitcntr(hndl, &arrived, 1, NULL));
    CHECK(completion_calls == i + 1, "%d completion handlers after message %d", completion_calls,
          i);
    OK(LAPI_Gfence(hndl));
  }
  free(data);
}

// A small message and a large one from the same task.
static void packet_or_not(void) {
  const unsigned right = (unsigned)((task_id + 1) % num_tasks);
  const size_t lens[] = {2000, 40000, 1, 3000};
  unsigned char* data = malloc(40000);
  lapi_cntr_t done;
  OK(LAPI_Setcntr(hndl, &done, 0));
  for (int i = 0; i < 4; ++i) {
    fill(data, lens[i], i);
    OK(LAPI_Amsend(hndl, right, (void*)9, NULL, 0, data, lens[i], NULL, NULL, &done));
    OK(LAPI_Waitcntr(hndl, &done, 1, NULL));
    OK(LAPI_Gfence(hndl));
    check_filled(landing, lens[i], i, "from a packet or not");
    OK(LAPI_Gfence(hndl));
  }
  free(data);
}

static void other_kinds(void) {
  const unsigned right = (unsigned)((task_id + 1) % num_tasks);
  lapi_cntr_t done;
  OK(LAPI_Setcntr(hndl, &done, 0));
  const int calls = header_calls;
  OK(LAPI_Gfence(hndl));
  OK(LAPI_Amsend(hndl, right, (void*)6, NULL, 0, NULL, 0, NULL, NULL, &done));
  OK(LAPI_Waitcntr(hndl, &done, 1, NULL));
  OK(LAPI_Gfence(hndl));
  CHECK(header_calls == calls + 1, "%d header handlers", header_calls - calls);
  lapi_xfer_t x;
  memset(&x, 0, sizeof x);
  x.Am.Xfer_type = LAPI_AM_LW_XFER;
  x.Am.hdr_hdl = 7;
  x.Am.udata_len = sizeof(int);
  for (int i = 1; i <= 5000; ++i) {  // more than a stream holds; the data may be reused at once
    int value = i;
    x.Am.tgt = right;
    x.Am.udata = &value;
    OK(LAPI_Xfer(hndl, &x));
    value = -1;
  }
  OK(LAPI_Gfence(hndl));
  CHECK(packet_sum == 5000 * 5001 / 2, "the sum is %d", packet_sum);
  unsigned char data[60];
  void* info[3] = {data, data + 10, data + 30};
  ulong len[3] = {10, 20, 30};
  lapi_vec_t vector = {LAPI_GEN_IOVECTOR, 3, info, len};
  fill(data, sizeof data, 9);
  OK(LAPI_Amsendv(hndl, right, (void*)8, "abc", 4, &vector, NULL, NULL, &done));
  OK(LAPI_Waitcntr(hndl, &done, 1, NULL));
  OK(LAPI_Gfence(hndl));
  unsigned char got[60];
  memcpy(got, landing, 10);
  memcpy(got + 10, landing + 100, 20);
  memcpy(got + 30, landing + 200, 30);
  check_filled(got, sizeof got, 9, "vector message");
}

static void errors(void) {
  const unsigned beyond = (unsigned)num_tasks;
  static char big[1];
  void* table[1];
  int value;
  FAILS(LAPI_ERR_TGT, "its tasks are 0 to",
        LAPI_Amsend(hndl, beyond, (void*)5, NULL, 0, NULL, 0, NULL, NULL, NULL));
  FAILS(LAPI_ERR_HDR_HNDLR_NULL, "NULL",
        LAPI_Amsend(hndl, 0, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL));
  FAILS(LAPI_ERR_UHDR_LEN, "MAX_UHDR_SZ is",
        LAPI_Amsend(hndl, 0, (void*)5, big, 1 << 30, NULL, 0, NULL, NULL, NULL));
  FAILS(LAPI_ERR_UHDR_NULL, "NULL",
        LAPI_Amsend(hndl, 0, (void*)5, NULL, 4, NULL, 0, NULL, NULL, NULL));
  FAILS(LAPI_ERR_ORG_ADDR_NULL, "length is 9",
        LAPI_Amsend(hndl, 0, (void*)5, NULL, 0, NULL, 9, NULL, NULL, NULL));
  FAILS(LAPI_ERR_DATA_LEN, "LAPI_MAX_MSG_SZ",
        LAPI_Put(hndl, 0, (ulong)-1, big, big, NULL, NULL, NULL));
  FAILS(LAPI_ERR_TGT_ADDR_NULL, "NULL", LAPI_Put(hndl, 0, 1, NULL, big, NULL, NULL, NULL));
  FAILS(LAPI_ERR_CNTR_NULL, "NULL", LAPI_Waitcntr(hndl, NULL, 1, NULL));
  FAILS(LAPI_ERR_CNTR_VAL, "positive", LAPI_Waitcntr(hndl, &(lapi_cntr_t){0, 0}, 0, NULL));
  FAILS(LAPI_ERR_HNDL_INVALID, "not the handle", LAPI_Probe(hndl + 1));
  FAILS(LAPI_ERR_ADDR_HNDL_RANGE, "between 1 and", LAPI_Addr_set(hndl, big, 64));
  FAILS(LAPI_ERR_ADDR_HNDL_RANGE, "between 1 and", LAPI_Addr_get(hndl, table, 0));
  FAILS(LAPI_ERR_QUERY_TYPE, "query", LAPI_Qenv(hndl, LAST_QUERY, &value));
  FAILS(LAPI_ERR_QUERY_TYPE, "cannot be set", LAPI_Senv(hndl, TASK_ID, 1));
  FAILS(LAPI_ERR_SET_VAL, "neither 0 nor 1", LAPI_Senv(hndl, INTERRUPT_SET, 2));
  FAILS(LAPI_ERR_ADDR_TBL_NULL, "NULL", LAPI_Address_init(hndl, big, NULL));
  char text[LAPI_MAX_ERR_STRING];
  CHECK(LAPI_Msg_string(4711, text) == LAPI_ERR_CODE_UNKNOWN, "an unknown code");
}

int main(void) {
  begin();
  landing = malloc(most);
  void** handler_of = calloc((size_t)num_tasks, sizeof *handler_of);
  peers_counter = calloc((size_t)num_tasks, sizeof *peers_counter);
  OK(LAPI_Addr_set(hndl, (void*)on_header, 5));
  OK(LAPI_Addr_set(hndl, (void*)on_bare, 6));
  OK(LAPI_Addr_set(hndl, (void*)on_packet, 7));
  OK(LAPI_Addr_set(hndl, (void*)on_vector, 8));
  OK(LAPI_Addr_set(hndl, (void*)on_either, 9));
  void* handler = NULL;
  OK(LAPI_Addr_get(hndl, &handler, 8));
  CHECK(handler == (void*)on_vector, "LAPI_Addr_get");
  OK(LAPI_Address_init(hndl, &header_calls, peers_counter));
  OK(LAPI_Address_init(hndl, (void*)on_header, handler_of));
  all_sizes(handler_of);
  packet_or_not();
  OK(LAPI_Senv(hndl, INTERRUPT_SET, 0));  // polling: Waitcntr and Gfence make progress
  other_kinds();
  OK(LAPI_Senv(hndl, INTERRUPT_SET, 1));
  errors();
  end();
  printf("task %d of %d is done\n", task_id, num_tasks);
  return 0;
}
