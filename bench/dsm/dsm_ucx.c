// dsm_ucx: the same operations by UCX alone: ucp_get, ucp_put, and a flush for WRITE_B.
//
//   dsm_ucx WAIT            two processes of this host
//   dsm_ucx WAIT listen     the target's side, on one host
//   dsm_ucx WAIT ADDRESS    and the measuring side, on another
//
// WAIT is how the target waits: `polls` (the usual way of UCX) or `sleeps` (at its descriptor).
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include "cells.h"

enum { port = 4799, most_name = 65536 };

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h endpoint;
static ucp_rkey_h key;
static uint64_t target;  // address of its memory

static void check(ucs_status_t status, const char* what) {
  if (status == UCS_OK) return;
  fprintf(stderr, "dsm_ucx: %s: %s\n", what, ucs_status_string(status));
  exit(1);
}

static void move(int socket, void* data, size_t bytes, int sends) {
  for (size_t done = 0; done < bytes;) {
    char* at = (char*)data + done;
    const ssize_t moved = sends ? write(socket, at, bytes - done) : read(socket, at, bytes - done);
    if (moved <= 0) exit(1);
    done += (size_t)moved;
  }
}

static void send_block(int socket, void* data, size_t bytes) {
  move(socket, &bytes, sizeof bytes, 1);
  move(socket, data, bytes, 1);
}

static size_t receive_block(int socket, void* data) {
  size_t bytes;
  move(socket, &bytes, sizeof bytes, 0);
  if (bytes > most_name) exit(1);
  move(socket, data, bytes, 0);
  return bytes;
}

static void start(void) {
  ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                         .features = UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP};
  ucp_worker_params_t of_worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                   .thread_mode = UCS_THREAD_MODE_SINGLE};
  check(ucp_init(&params, NULL, &context), "starting");
  check(ucp_worker_create(context, &of_worker, &worker), "creating a worker");
}

static void connect_endpoint(const void* address) {
  ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = address};
  check(ucp_ep_create(worker, &params, &endpoint), "connecting");
}

static void exchange_addresses(int socket) {
  static char other[most_name];
  ucp_address_t* own;
  size_t bytes;
  check(ucp_worker_get_address(worker, &own, &bytes), "getting an address");
  send_block(socket, own, bytes);
  receive_block(socket, other);
  connect_endpoint(other);
  ucp_worker_release_address(worker, own);
}

// Until the other side closes the socket.
static void serve(int socket, int sleeps) {
  struct pollfd watched[2] = {{socket, POLLIN, 0}, {-1, POLLIN, 0}};
  check(ucp_worker_get_efd(worker, &watched[1].fd), "sleeping");
  for (unsigned rounds = 0;; rounds++) {
    while (ucp_worker_progress(worker)) {
    }
    if (sleeps && ucp_worker_arm(worker) != UCS_OK) continue;
    if (sleeps) poll(watched, 2, -1);
    if (!sleeps && rounds % 10000 == 0) poll(watched, 1, 0);
    if (watched[0].revents != 0) return;
  }
}

static void be_target(int socket, int sleeps) {
  ucp_mem_map_params_t params = {
      .field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
      .length = most_bytes,
      .flags = UCP_MEM_MAP_ALLOCATE};
  ucp_mem_attr_t known = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
  ucp_mem_h memory;
  void* packed;
  size_t bytes;
  start();
  check(ucp_mem_map(context, &params, &memory), "mapping memory");
  check(ucp_mem_query(memory, &known), "asking for its address");
  memset(known.address, 1, most_bytes);
  check(ucp_rkey_pack(context, memory, &packed, &bytes), "packing a key");
  exchange_addresses(socket);
  send_block(socket, packed, bytes);
  send_block(socket, &known.address, sizeof known.address);
  serve(socket, sleeps);
}

static void finish_request(ucs_status_ptr_t request) {
  ucs_status_t status = UCS_PTR_STATUS(request);
  if (UCS_PTR_IS_PTR(request)) {
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS)
      ucp_worker_progress(worker);
    ucp_request_free(request);
  }
  check(status, "an operation");
}

static void finish(void) {
  const ucp_request_param_t param = {0};
  finish_request(ucp_ep_flush_nbx(endpoint, &param));
}

static void one(enum operation operation, void* data, size_t bytes) {
  const ucp_request_param_t param = {0};
  if (operation == op_read)
    finish_request(ucp_get_nbx(endpoint, data, bytes, target, key, &param));
  else
    finish_request(ucp_put_nbx(endpoint, data, bytes, target, key, &param));
  if (operation == op_write_b) finish();
}

static void be_origin(int socket) {
  static char packed[most_name];
  start();
  exchange_addresses(socket);
  receive_block(socket, packed);
  check(ucp_ep_rkey_unpack(endpoint, packed, &key), "reading a key");
  receive_block(socket, &target);
  measure_cells(one, finish, NULL);
}

static int socket_to(const char* address) {
  struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(port)};
  const int own = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  setsockopt(own, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (strcmp(address, "listen") == 0) {
    if (bind(own, (struct sockaddr*)&place, sizeof place) != 0 || listen(own, 1) != 0) exit(1);
    return accept(own, NULL, NULL);
  }
  inet_pton(AF_INET, address, &place.sin_addr);
  for (int tries = 0; connect(own, (struct sockaddr*)&place, sizeof place) != 0; tries++) {
    if (tries == 100) exit(1);
    usleep(50000);
  }
  return own;
}

int main(int argc, char** argv) {
  int pair[2];
  if (argc < 2) return fprintf(stderr, "dsm_ucx polls|sleeps [listen|ADDRESS]\n"), 2;
  const int sleeps = strcmp(argv[1], "sleeps") == 0;
  if (argc > 2) {
    const int socket = socket_to(argv[2]);
    strcmp(argv[2], "listen") == 0 ? be_target(socket, sleeps) : be_origin(socket);
    return 0;
  }
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 1;
  const int is_target = fork() == 0;
  close(pair[is_target]);
  is_target ? be_target(pair[0], sleeps) : be_origin(pair[1]);
  return 0;
}
