// RANKS: none
// Sequences of calls of runtimes that others built on LAPI.
//
// Broadcasts: a message without a user header, whose handler has an index; the completion handler
// runs inline, and forwards a copy along a hypercube, which the send completion handler frees.
// Requests: header handlers queue requests; a completion handler or the program that polls serves
// the queue and answers; answers run in the header handler. Shutdown: a completion handler starts a
// thread, which ends the job while the main thread waits.
#include <pthread.h>
#include <unistd.h>

#include "check.h"

enum { broadcasts = 60, requests = 400, most_data = 60000, by_index = 1 };

// ---- Broadcasts ----
struct broadcast {
  int root, number, len;
  unsigned char data[];
};
static int received;
static long freed;

static int len_of(int number) { return number % 5 == 0 ? most_data + number : number * 37; }

static void release(lapi_handle_t* handle, void* copy, lapi_sh_info_t* info) {
  CHECK(*handle == hndl && info->reason == LAPI_SUCCESS, "reason %u", info->reason);
  free(copy);
  __atomic_add_fetch(&freed, 1, __ATOMIC_SEQ_CST);
}

// To the tasks below this one in the tree whose root is the message's.
static void forward(const struct broadcast* message) {
  const int place = (task_id - message->root + num_tasks) % num_tasks;
  for (int step = 1; step < num_tasks && (place & step) == 0; step <<= 1) {
    if (place + step >= num_tasks) break;
    const size_t bytes = sizeof *message + (size_t)message->len;
    lapi_xfer_t command;
    memset(&command, 0x5a, sizeof command);
    command.Am.Xfer_type = LAPI_AM_XFER;
    command.Am.flags = 0;
    command.Am.tgt = (uint)((place + step + message->root) % num_tasks);
    command.Am.hdr_hdl = by_index;
    command.Am.uhdr_len = 0;
    command.Am.uhdr = NULL;
    command.Am.udata = memcpy(malloc(bytes), message, bytes);
    command.Am.udata_len = bytes;
    command.Am.shdlr = release;
    command.Am.sinfo = command.Am.udata;
    command.Am.tgt_cntr = 0;
    command.Am.org_cntr = NULL;
    command.Am.cmpl_cntr = NULL;
    OK(LAPI_Xfer(hndl, &command));
  }
}

static void take_broadcast(lapi_handle_t* handle, void* info) {
  struct broadcast* message = info;
  CHECK(*handle == hndl && message->len == len_of(message->number), "length %d", message->len);
  for (int i = 0; i < message->len; ++i)
    CHECK(message->data[i] == (unsigned char)(message->root + message->number + i), "byte %d", i);
  forward(message);
  free(message);
  __atomic_add_fetch(&received, 1, __ATOMIC_SEQ_CST);
}

static void* begin_broadcast(lapi_handle_t* handle, void* header, uint* header_len,
                             lapi_return_info_t* info, compl_hndlr_t** complete, void** user) {
  CHECK(*handle == hndl && header == NULL && *header_len == 0, "a header of %u bytes", *header_len);
  info->ret_flags = LAPI_SEND_REPLY;
  *complete = take_broadcast;
  return *user = malloc(info->msg_len);
}

static void broadcast_all(void) {
  received = 0;
  OK(LAPI_Gfence(hndl));
  for (int number = 0; number < broadcasts; ++number) {
    struct broadcast* message = malloc(sizeof *message + (size_t)len_of(number));
    *message = (struct broadcast){.root = task_id, .number = number, .len = len_of(number)};
    for (int i = 0; i < message->len; ++i) message->data[i] = (unsigned char)(task_id + number + i);
    forward(message);
    free(message);
  }
  while (__atomic_load_n(&received, __ATOMIC_SEQ_CST) < broadcasts * (num_tasks - 1))
    OK(LAPI_Probe(hndl));
  OK(LAPI_Gfence(hndl));
}

// ---- Requests ----
struct request {
  struct request* next;
  unsigned char* data;
  int source, number, len;
};
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static struct request* queue;
static int is_scheduled, answers;
static long answered_sum;
static void **request_handlers, **answer_handlers;

// A wait that polls, also in a handler.
static void spin(lapi_cntr_t* counter, int value) {
  int now = 0;
  lapi_msg_info_t info;
  while (1) {
    OK(LAPI_Getcntr(hndl, counter, &now));
    if (now >= value) break;
    OK(LAPI_Msgpoll(hndl, 1, &info));
  }
  OK(LAPI_Setcntr(hndl, counter, now - value));
}

static void send_from_stack(int task, void* handler, const struct request* header, void* data,
                            int len) {
  struct request copy = *header;
  lapi_cntr_t origin;
  OK(LAPI_Setcntr(hndl, &origin, 0));
  OK(LAPI_Amsend(hndl, (uint)task, handler, &copy, sizeof copy, data, (ulong)len, NULL, &origin,
                 NULL));
  spin(&origin, 1);
  memset(&copy, 0xee, sizeof copy);
}

static void serve(struct request* request) {
  long sum = 0;
  for (int i = 0; i < request->len; ++i) sum += request->data[i];
  struct request answer = {.source = task_id, .number = (int)sum, .len = request->number};
  send_from_stack(request->source, answer_handlers[request->source], &answer, NULL, 0);
  free(request->data);
  free(request);
}

static void serve_queue(int ends_schedule) {
  while (1) {
    pthread_mutex_lock(&queue_lock);
    struct request* first = queue;
    if (first != NULL) queue = first->next;
    if (first == NULL && ends_schedule) is_scheduled = 0;
    pthread_mutex_unlock(&queue_lock);
    if (first == NULL) return;
    serve(first);
  }
}

static void serve_later(lapi_handle_t* handle, void* info) {
  (void)handle;
  if (info != NULL) serve(info);
  serve_queue(1);
}

// Without data, the request is queued, and a completion handler runs only if none is to run.
static void* take_request(lapi_handle_t* handle, void* header, uint* header_len, ulong* len,
                          compl_hndlr_t** complete, void** info) {
  CHECK(*handle == hndl && *header_len == sizeof(struct request), "%u bytes", *header_len);
  struct request* request = memcpy(malloc(sizeof *request), header, sizeof *request);
  *complete = serve_later;
  CHECK(*len == (ulong)request->len, "%lu bytes of data", *len);
  if (*len > 0) {
    request->data = malloc(*len);
    *info = request;
    return request->data;
  }
  *info = NULL;
  request->data = NULL;
  pthread_mutex_lock(&queue_lock);
  request->next = queue;
  queue = request;
  if (is_scheduled) *complete = NULL;
  is_scheduled = 1;
  pthread_mutex_unlock(&queue_lock);
  return NULL;
}

static void* take_answer(lapi_handle_t* handle, void* header, uint* header_len, ulong* len,
                         compl_hndlr_t** complete, void** info) {
  CHECK(*handle == hndl && *header_len == sizeof(struct request) && *len == 0, "an answer");
  __atomic_add_fetch(&answered_sum, ((struct request*)header)->number, __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&answers, 1, __ATOMIC_SEQ_CST);
  *complete = NULL;
  *info = NULL;
  return NULL;
}

static void request_all(int interrupts) {
  OK(LAPI_Senv(hndl, INTERRUPT_SET, interrupts));
  answers = 0;
  answered_sum = 0;
  OK(LAPI_Gfence(hndl));
  unsigned char* data = malloc(most_data);
  memset(data, 3, most_data);
  long expected = 0;
  int sent = 0;
  lapi_msg_info_t info;
  for (int i = 0; i < requests; ++i) {
    for (int task = 0; task < num_tasks; ++task, ++sent) {
      const int len = i % 3 == 0 ? 0 : i % 50 == 1 ? most_data : i;
      const struct request request = {.source = task_id, .number = i, .len = len};
      send_from_stack(task, request_handlers[task], &request, data, len);
      expected += 3L * len;
    }
    serve_queue(0);
    OK(LAPI_Msgpoll(hndl, 1, &info));
  }
  while (__atomic_load_n(&answers, __ATOMIC_SEQ_CST) < sent) {
    serve_queue(0);
    OK(LAPI_Msgpoll(hndl, 1, &info));
  }
  CHECK(answered_sum == expected, "%ld instead of %ld", answered_sum, expected);
  free(data);
  // Another task may still send requests.
  OK(LAPI_Senv(hndl, INTERRUPT_SET, 1));
  OK(LAPI_Gfence(hndl));
}

// ---- Shutdown ----
static void** exit_handlers;

static void leave(int code) {
  OK(LAPI_Gfence(hndl));
  OK(LAPI_Term(hndl));
  _exit(code);
}

static void* leave_by_thread(void* code) {
  pthread_detach(pthread_self());
  leave((int)(long)code);
  return NULL;
}

static void exit_asked(lapi_handle_t* handle, void* code) {
  (void)handle;
  pthread_t thread;
  pthread_create(&thread, NULL, leave_by_thread, code);
}

static void* take_exit(lapi_handle_t* handle, void* header, uint* header_len, ulong* len,
                       compl_hndlr_t** complete, void** info) {
  (void)handle, (void)header_len, (void)len;
  *complete = exit_asked;
  *info = (void*)(long)*(int*)header;
  return NULL;
}

static void shut_down(void) {
  lapi_cntr_t never, sent;
  OK(LAPI_Setcntr(hndl, &never, 0));
  OK(LAPI_Setcntr(hndl, &sent, 0));
  OK(LAPI_Gfence(hndl));
  if (task_id == 0) {
    int code = 0;
    for (int task = 1; task < num_tasks; ++task)
      OK(LAPI_Amsend(hndl, (uint)task, exit_handlers[task], &code, sizeof code, NULL, 0, NULL,
                     &sent, NULL));
    spin(&sent, num_tasks - 1);
    leave(code);
  }
  // The thread ends the process. Its LAPI_Term may end this wait first.
  if (task_id % 2 == 1) LAPI_Waitcntr(hndl, &never, 1, NULL);
  while (1)
    if (LAPI_Probe(hndl) != LAPI_SUCCESS) sleep(1);
}

static void** exchanged(void* own) {
  void** all = calloc((size_t)num_tasks, sizeof *all);
  OK(LAPI_Address_init(hndl, own, all));
  return all;
}

int main(void) {
  begin();
  OK(LAPI_Addr_set(hndl, (void*)begin_broadcast, by_index));
  request_handlers = exchanged((void*)take_request);
  answer_handlers = exchanged((void*)take_answer);
  exit_handlers = exchanged((void*)take_exit);
  for (int checks = 0; checks < 2; ++checks) {
    OK(LAPI_Senv(hndl, ERROR_CHK, checks));
    for (int interrupts = 0; interrupts < 2; ++interrupts) {
      OK(LAPI_Senv(hndl, INTERRUPT_SET, interrupts));
      broadcast_all();
      request_all(interrupts);
    }
  }
  shut_down();
  return 1;
}
