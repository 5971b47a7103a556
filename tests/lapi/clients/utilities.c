// RANKS: none
// LAPI_Util and LAPI_RDMA_XFER as runtimes use them: each task names its window, all exchange the
// names, then each writes to its right neighbor's window and reads it back, in parts.
#include "check.h"

enum { len = 200000, part = 70001, tag = 22 };
static unsigned char window[len], source[len], back[len];
static int sends, arrivals;

static unsigned char byte_of(int task, int at) {
  return (unsigned char)(task * 31 + at * 7 + at / 251);
}

static void note_sent(lapi_handle_t* handle, void* param, lapi_sh_info_t* info) {
  CHECK(*handle == hndl && info->reason == LAPI_SUCCESS, "reason %u", info->reason);
  __atomic_add_fetch((int*)param, 1, __ATOMIC_SEQ_CST);
}

// The data of a get is there when its handler is called.
static void note_arrived(lapi_handle_t* handle, void* param, lapi_sh_info_t* info) {
  const int right = (task_id + 1) % num_tasks;
  CHECK((int)info->src == right, "task %u", info->src);
  const int at = (int)((unsigned char*)param - back);
  CHECK(back[at] == byte_of(task_id, at), "byte %d is not there", at);
  note_sent(handle, &arrivals, info);
}

static int util(void* command) { return LAPI_Util(hndl, (lapi_util_t*)command); }

static lapi_user_pvo_t name_of(void* memory) {
  lapi_get_pvo_t command;
  memset(&command, 0, sizeof command);
  command.Util_type = LAPI_XLATE_ADDRESS;
  command.length = len;
  command.address = memory;
  command.operation = LAPI_RDMA_ACQUIRE;
  OK(util(&command));
  return command.usr_pvo;
}

static lapi_xfer_t part_of(uint op, int at, lapi_user_pvo_t here, lapi_user_pvo_t there) {
  lapi_xfer_t command;
  memset(&command, 0, sizeof command);
  command.HwXfer.Xfer_type = LAPI_RDMA_XFER;
  command.HwXfer.tgt = (uint)((task_id + 1) % num_tasks);
  command.HwXfer.op = op;
  command.HwXfer.rdma_tag = tag;
  command.HwXfer.src_pvo = here;
  command.HwXfer.tgt_pvo = there;
  command.HwXfer.src_offset = (lapi_long_t)at;
  command.HwXfer.tgt_offset = (lapi_long_t)at;
  command.HwXfer.len = (ulong)(len - at < part ? len - at : part);
  return command;
}

static void write_and_read(lapi_user_cxt_t permission, lapi_user_pvo_t there) {
  lapi_cntr_t done;
  OK(LAPI_Setcntr(hndl, &done, 0));
  int parts = 0, left = -1;
  for (int at = 0; at < len; at += part, ++parts) {
    lapi_xfer_t command = part_of(LAPI_RDMA_PUT, at, name_of(source), there);
    command.HwXfer.remote_cxt = permission;
    command.HwXfer.shdlr = note_sent;
    command.HwXfer.sinfo = &sends;
    command.HwXfer.org_cntr = &done;
    OK(LAPI_Xfer(hndl, &command));
  }
  OK(LAPI_Waitcntr(hndl, &done, parts, &left));
  CHECK(left == 0 && sends == parts, "%d left, %d sent", left, sends);
  for (int at = 0; at < len; at += part) {
    lapi_xfer_t command = part_of(LAPI_RDMA_GET, at, name_of(back), there);
    command.HwXfer.remote_cxt = permission;
    command.HwXfer.shdlr = note_arrived;
    command.HwXfer.sinfo = back + at;
    command.HwXfer.org_cntr = &done;
    OK(LAPI_Xfer(hndl, &command));
  }
  OK(LAPI_Waitcntr(hndl, &done, parts, &left));
  CHECK(left == 0, "%d left", left);
  while (__atomic_load_n(&arrivals, __ATOMIC_SEQ_CST) < parts) OK(LAPI_Probe(hndl));
  CHECK(memcmp(back, source, len) == 0, "what was written is not what is read");
}

static void refuse(void) {
  lapi_remote_cxt_t permission = {LAPI_REMOTE_RCXT, LAPI_RDMA_ACQUIRE, (uint)num_tasks, 0};
  FAILS(LAPI_ERR_TGT, "is not in the job", util(&permission));
  permission.operation = (lapi_rdma_request_t)9;
  FAILS(LAPI_ERR_UTIL_CMD, "operation 9", util(&permission));
  permission.Util_type = (lapi_util_type_t)99;
  FAILS(LAPI_ERR_UTIL_CMD, "command 99", util(&permission));
  FAILS(LAPI_ERR_UTIL_CMD, "NULL", util(NULL));
  lapi_get_pvo_t name = {LAPI_XLATE_ADDRESS, len, 0, NULL, LAPI_RDMA_ACQUIRE};
  FAILS(LAPI_ERR_ORG_ADDR_NULL, "NULL", util(&name));
  lapi_xfer_t command = part_of(LAPI_RDMA_PUT | LAPI_RDMA_GET, 0, 1, 1);
  FAILS(LAPI_ERR_XFER_CMD, "op 3", LAPI_Xfer(hndl, &command));
}

int main(void) {
  begin();
  for (int i = 0; i < len; ++i) source[i] = byte_of(task_id, i);
  const int right = (task_id + 1) % num_tasks, left = (task_id + num_tasks - 1) % num_tasks;
  lapi_user_pvo_t* windows = calloc((size_t)num_tasks, sizeof *windows);
  OK(LAPI_Address_init64(hndl, name_of(window), windows));
  lapi_remote_cxt_t permission = {LAPI_REMOTE_RCXT, LAPI_RDMA_ACQUIRE, (uint)right, 0};
  OK(util(&permission));
  write_and_read(permission.usr_rcxt, windows[right]);
  OK(LAPI_Gfence(hndl));
  for (int i = 0; i < len; ++i) CHECK(window[i] == byte_of(left, i), "byte %d", i);
  permission.operation = LAPI_RDMA_RELEASE;
  OK(util(&permission));
  lapi_get_pvo_t name = {LAPI_XLATE_ADDRESS, 0, windows[task_id], NULL, LAPI_RDMA_RELEASE};
  OK(util(&name));
  refuse();
  free(windows);
  end();
  return 0;
}
