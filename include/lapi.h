/* The Low-level Application Programming Interface (LAPI): one-sided communication and active
 * messages between the tasks of a job.
 *
 * Link with -llapi or -llapi_r (they are the same), and start the program with
 * `shima run --lapi -n TASKS program`. Names and signatures follow the public manual pages of
 * LAPI_Init and the other calls; numeric values are Shima's own. Every call returns LAPI_SUCCESS or
 * the code of an error, whose text LAPI_Msg_string returns.
 *
 * An operation returns before it is complete. Up to three counters report its progress: the origin
 * counter when the origin's memory may be reused (a Get: when the data has arrived), the target
 * counter in the target's memory when the data is there (an active message: after its completion
 * handler), the completion counter at the origin when the same is known there. A counter pointer
 * may be NULL. Operations are ordered by fences only. */
#ifndef SHIMA_LAPI_H
#define SHIMA_LAPI_H

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#if __cplusplus >= 201103L
#define LAPI_NOEXCEPT noexcept
#else
#define LAPI_NOEXCEPT throw()
#endif
#else
#define LAPI_NOEXCEPT
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

typedef unsigned int uint;
typedef unsigned long ulong;
typedef unsigned int lapi_handle_t;
typedef unsigned long long lapi_long_t; /* an address in any task */

/* Opaque: set with LAPI_Setcntr or to zero, read with LAPI_Getcntr. May be anywhere in memory. */
typedef struct {
  int value;
  unsigned int last;
} lapi_cntr_t;

#define LAPI_ADDR_NULL      ((void*)0)
#define LAPI_MAX_ERR_STRING 512
#define LAPI_MAX_MSG_SZ     0x7fffffffffffffffUL

/* ---- Errors ---------------------------------------------------------------------------------- */

#define LAPI_SUCCESS                  0
#define LAPI_ERR_UNKNOWN              400 /* an internal error */
#define LAPI_ERR_TASK_LOST            401 /* a task of the job has ended, or cannot be reached */
#define LAPI_ERR_TGT_PURGED           401
#define LAPI_ERR_TIMEOUT              402
#define LAPI_ERR_HNDL_INVALID         403
#define LAPI_ERR_ALL_HNDL_IN_USE      404
#define LAPI_ERR_INFO_NULL            405
#define LAPI_ERR_INFO_NONZERO_INFO    406
#define LAPI_ERR_MEMORY_EXHAUSTED     407
#define LAPI_ERR_NOT_STARTED          408 /* not a task of a job: start it with shima run --lapi */
#define LAPI_ERR_MSG_API              408
#define LAPI_ERR_SHM_SETUP            409
#define LAPI_ERR_BAD_PARAMETER        410
#define LAPI_ERR_IN_HANDLER           411 /* a header handler waits, or any calls LAPI_Term */
#define LAPI_ERR_TGT                  412
#define LAPI_ERR_DATA_LEN             413
#define LAPI_ERR_ORG_ADDR_NULL        414
#define LAPI_ERR_TGT_ADDR_NULL        415
#define LAPI_ERR_HDR_HNDLR_NULL       416
#define LAPI_ERR_HDR_HNDLR            417
#define LAPI_ERR_UHDR_LEN             418
#define LAPI_ERR_UHDR_NULL            419
#define LAPI_ERR_HDR_LEN              418
#define LAPI_ERR_CNTR_NULL            420
#define LAPI_ERR_CNTR_VAL             421
#define LAPI_ERR_RMW_OP               422
#define LAPI_ERR_IN_VAL_NULL          423
#define LAPI_ERR_TGT_VAR_NULL         424
#define LAPI_ERR_OP_SZ                425
#define LAPI_ERR_QUERY_TYPE           426
#define LAPI_ERR_SET_VAL              427
#define LAPI_ERR_RET_PTR_NULL         428
#define LAPI_ERR_ADDR_HNDL_RANGE      429
#define LAPI_ERR_ADDR_TBL_NULL        430
#define LAPI_ERR_MSG_INFO_NULL        431
#define LAPI_ERR_XFER_CMD             432
#define LAPI_ERR_UTIL_CMD             433
#define LAPI_ERR_CODE_UNKNOWN         434
#define LAPI_ERR_CATALOG_FAIL         435
#define LAPI_ERR_ORG_VEC_NULL         440
#define LAPI_ERR_TGT_VEC_NULL         441
#define LAPI_ERR_ORG_VEC_TYPE         442
#define LAPI_ERR_TGT_VEC_TYPE         443
#define LAPI_ERR_VEC_TYPE_DIFF        444
#define LAPI_ERR_VEC_NUM_DIFF         445
#define LAPI_ERR_VEC_LEN_DIFF         446
#define LAPI_ERR_ORG_VEC_LEN          447
#define LAPI_ERR_TGT_VEC_LEN          448
#define LAPI_ERR_ORG_VEC_ADDR         449
#define LAPI_ERR_TGT_VEC_ADDR         450
#define LAPI_ERR_ORG_STRIDE           451
#define LAPI_ERR_TGT_STRIDE           452
#define LAPI_ERR_ORG_EXTENT           453
#define LAPI_ERR_TGT_EXTENT           454
#define LAPI_ERR_STRIDE_ORG_ADDR_NULL 455
#define LAPI_ERR_STRIDE_TGT_ADDR_NULL 456
/* Of adapters, protocols and programs that Shima does not have; never returned. */
#define LAPI_ERR_BOTH_NETSTR_SET     470
#define LAPI_ERR_NO_NETSTR_SET       471
#define LAPI_ERR_CSS_LOAD_FAILED     472
#define LAPI_ERR_NO_UDP_HNDLR        473
#define LAPI_ERR_USER_UDP_HNDLR_FAIL 474
#define LAPI_ERR_UDP_PKT_SZ          475
#define LAPI_ERR_PSS_NON_ROOT        476
#define LAPI_ERR_COLLECTIVE_PSS      477
#define LAPI_ERR_SHM_KE_NOT_LOADED   478
#define LAPI_ERR_DGSP                479
#define LAPI_ERR_DGSP_FREE           480
#define LAPI_ERR_NO_RDMA_RESOURCE    481
/* Of older versions of LAPI. A program that tests whether it is defined learns that LAPI_Putv and
 * LAPI_Getv exist. */
#define LAPI_ERR_BAD_NINTH_PARM 490

/* In C any int may arrive in such a type, and is refused; C++ has to be told that it may. */
#if defined(__cplusplus) && __cplusplus >= 201103L
#define LAPI_ANY_INT : int
#else
#define LAPI_ANY_INT
#endif

typedef enum LAPI_ANY_INT { INT_ERR = 0, COM_ERR, USER_ERR } lapi_err_t;

/* Called once for each task that is lost, on a thread of LAPI: `src` is that task. */
typedef void(LAPI_err_hndlr)(lapi_handle_t* hndl, int* error_code, lapi_err_t* err_type,
                             int* task_id, int* src);

/* ---- A context ------------------------------------------------------------------------------- */

typedef enum LAPI_ANY_INT {
  NULL_DEV = 0,
  TB2_DEV,
  TB3_DEV,
  VIRTUAL_DEV,
  CLONE_DEV,
  UDP_DEV
} lapi_dev_t;
typedef enum LAPI_ANY_INT { L1_LIB = 0, L2_LIB, LAST_LIB } lapi_lib_t;

typedef struct lapi_extend lapi_extend_t;
typedef struct com_thread_info com_thread_info_t;

/* The caller sets it to zero first. Shima uses err_hndlr and num_compl_hndlr_thr. */
typedef struct {
  lapi_dev_t protocol;
  lapi_lib_t lib_vers;
  uint epoch_num;
  int num_compl_hndlr_thr; /* how many threads run completion handlers; 0: one */
  uint instance_no;
  int info6;
  LAPI_err_hndlr* err_hndlr;
  com_thread_info_t* lapi_thread_attr;
  void* adapter_name;
  lapi_extend_t* add_info;
} lapi_info_t;

/* A process may call LAPI_Init up to 16 times; the nth contexts of the tasks belong together. */
int LAPI_Init(lapi_handle_t* hndl, lapi_info_t* lapi_info) LAPI_NOEXCEPT;
/* Waits for the caller's own operations, not for those of other tasks. */
int LAPI_Term(lapi_handle_t hndl) LAPI_NOEXCEPT;
/* `buf` has LAPI_MAX_ERR_STRING bytes. Describes the thread's last error in detail. */
int LAPI_Msg_string(int error_code, void* buf) LAPI_NOEXCEPT;

typedef enum LAPI_ANY_INT {
  TASK_ID = 0,
  NUM_TASKS,
  MAX_UHDR_SZ,
  MAX_DATA_SZ, /* INT_MAX if larger */
  ERROR_CHK,   /* 1: check arguments; may be set */
  TIMEOUT,     /* seconds; may be set; has no effect within a node */
  MIN_TIMEOUT,
  MAX_TIMEOUT,
  INTERRUPT_SET, /* 1: messages are served also while the program computes; may be set */
  MAX_PORTS,
  MAX_PKT_SZ, /* up to this size a header handler gets the data by udata_one_pkt_ptr */
  NUM_REX_BUFS,
  REX_BUF_SZ,
  LOC_ADDRTBL_SZ, /* indices of LAPI_Addr_set are below it */
  EPOCH_NUM,
  USE_THRESH,
  RCV_FIFO_SIZE,
  MAX_ATOM_SIZE,
  BUF_CP_SIZE,
  MAX_PKTS_OUT,
  ACK_THRESHOLD,
  QUERY_SHM_ENABLED,
  QUERY_SHM_NUM_TASKS,
  QUERY_SHM_TASKS,
  QUERY_STATISTICS,
  PRINT_STATISTICS,
  QUERY_SHM_STATISTICS,
  QUERY_LOCAL_SEND_STATISTICS,
  BULK_XFER,
  BULK_MIN_MSG_SIZE,
  LAST_QUERY
} lapi_query_t;

int LAPI_Qenv(lapi_handle_t hndl, lapi_query_t query, int* ret_val) LAPI_NOEXCEPT;
int LAPI_Senv(lapi_handle_t hndl, lapi_query_t query, int set_val) LAPI_NOEXCEPT;

/* ---- Addresses ------------------------------------------------------------------------------- */

/* Collective: fills add_tab with every task's my_addr, any 8 bytes. */
int LAPI_Address_init(lapi_handle_t hndl, void* my_addr, void* add_tab[]) LAPI_NOEXCEPT;
int LAPI_Address_init64(lapi_handle_t hndl, lapi_long_t my_addr,
                        lapi_long_t* add_tab) LAPI_NOEXCEPT;
int LAPI_Address(void* my_addr, ulong* ret_addr) LAPI_NOEXCEPT;
/* Gives a header handler an index, 1 to LOC_ADDRTBL_SZ - 1, by which other tasks may name it. */
int LAPI_Addr_set(lapi_handle_t hndl, void* addr, int addr_hndl) LAPI_NOEXCEPT;
int LAPI_Addr_get(lapi_handle_t hndl, void** addr, int addr_hndl) LAPI_NOEXCEPT;

/* ---- Counters and progress ------------------------------------------------------------------- */

int LAPI_Setcntr(lapi_handle_t hndl, lapi_cntr_t* cntr, int val) LAPI_NOEXCEPT;
int LAPI_Getcntr(lapi_handle_t hndl, lapi_cntr_t* cntr, int* val) LAPI_NOEXCEPT;
/* Waits until the counter is at least `val`, subtracts `val`; `cur` (or NULL) gets the rest. */
int LAPI_Waitcntr(lapi_handle_t hndl, lapi_cntr_t* cntr, int val, int* cur) LAPI_NOEXCEPT;
int LAPI_Nopoll_wait(lapi_handle_t hndl, lapi_cntr_t* cntr, int val, int* cur) LAPI_NOEXCEPT;
int LAPI_Probe(lapi_handle_t hndl) LAPI_NOEXCEPT;

/* Flags of lapi_msg_info_t. */
#define LAPI_DISP_CNTR     0x0001 /* nothing was completed */
#define LAPI_SEND_COMPLETE 0x0002
#define LAPI_RECV_COMPLETE 0x0004
#define LAPI_BOTH_COMPLETE 0x0006
#define LAPI_POLLING_NET   0x0008

typedef uint lapi_msg_state_t;
typedef struct {
  lapi_msg_state_t status;
  ulong reserve[10];
} lapi_msg_info_t;

int LAPI_Msgpoll(lapi_handle_t hndl, uint cnt, lapi_msg_info_t* info) LAPI_NOEXCEPT;
/* Waits until what this task has sent is in the targets' memory. */
int LAPI_Fence(lapi_handle_t hndl) LAPI_NOEXCEPT;
/* Collective: LAPI_Fence on all tasks, and a barrier. */
int LAPI_Gfence(lapi_handle_t hndl) LAPI_NOEXCEPT;

/* ---- Handlers -------------------------------------------------------------------------------- */

typedef int lapi_dg_handle_t;
typedef int lapi_status_t;

/* How the completion handler of a message runs. */
typedef enum LAPI_ANY_INT {
  LAPI_NORMAL = 0,  /* on the completion thread; it may communicate and wait */
  LAPI_SEND_REPLY,  /* at once, by the dispatcher; it may send, but not wait */
  LAPI_LOCAL_STATE, /* at once, by the dispatcher; it may not communicate */
  LAPI_DGSP_UNUSED
} lapi_ret_flags_t;
typedef enum LAPI_ANY_INT {
  LAPI_DELIVER_MSG = 0,
  LAPI_BURY_MSG /* the data is dropped, or the handler has used udata_one_pkt_ptr */
} lapi_ctl_flags_t;

/* A header handler's fourth argument points to the first member. */
typedef struct {
  ulong msg_len;
  lapi_ret_flags_t ret_flags;
  lapi_ctl_flags_t ctl_flags;
  lapi_dg_handle_t dgsp_handle;
  lapi_status_t status;
  int src;                 /* the task that sent the message */
  void* udata_one_pkt_ptr; /* the data, if it is complete; valid until the handler returns */
  ulong bytes;
  void* recv_offset_dgsp_bytes;
} lapi_return_info_t;

typedef void(compl_hndlr_t)(lapi_handle_t* hndl, void* user_info);
/* Returns where the data of the message shall be stored. May neither wait nor block. */
typedef void*(hdr_hndlr_t)(lapi_handle_t* hndl, void* uhdr, uint* uhdr_len, ulong* msg_len,
                           compl_hndlr_t** comp_h, void** user_info);

typedef enum LAPI_ANY_INT {
  LAPI_GEN_GENERIC = 1,
  LAPI_GEN_IOVECTOR,
  LAPI_GEN_STRIDED_XFER
} lapi_vectype_t;

/* LAPI_GEN_IOVECTOR: piece i has len[i] bytes at info[i]. LAPI_GEN_STRIDED_XFER: num_vecs blocks
 * of info[1] bytes, the first at info[0], at distances of info[2] bytes. LAPI_GEN_GENERIC: as
 * LAPI_GEN_IOVECTOR, but the pieces of both sides may differ. */
typedef struct {
  lapi_vectype_t vec_type;
  uint num_vecs;
  void** info;
  ulong* len;
} lapi_vec_t;
typedef struct {
  lapi_vectype_t vec_type;
  uint num_vecs;
  lapi_long_t* info;
  ulong* len;
} lapi_lvec_t;

/* The header handler of a vector message: len_vec are the lengths of the origin's pieces (a strided
 * vector: number, block, stride; LAPI_GEN_GENERIC: the sum). */
typedef lapi_vec_t*(vhdr_hndlr_t)(lapi_handle_t* hndl, void* uhdr, uint* uhdr_len, ulong* len_vec,
                                  compl_hndlr_t** comp_h, void** user_info);

/* ---- Transfers ------------------------------------------------------------------------------- */

typedef enum LAPI_ANY_INT { FETCH_AND_ADD = 0, FETCH_AND_OR, SWAP, COMPARE_AND_SWAP } RMW_ops_t;
typedef RMW_ops_t Rmw_ops_t;

int LAPI_Put(lapi_handle_t hndl, uint tgt, ulong len, void* tgt_addr, void* org_addr,
             lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr, lapi_cntr_t* cmpl_cntr) LAPI_NOEXCEPT;
int LAPI_Get(lapi_handle_t hndl, uint tgt, ulong len, void* tgt_addr, void* org_addr,
             lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr) LAPI_NOEXCEPT;
int LAPI_Putv(lapi_handle_t hndl, uint tgt, lapi_vec_t* tgt_vec, lapi_vec_t* org_vec,
              lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr, lapi_cntr_t* cmpl_cntr) LAPI_NOEXCEPT;
int LAPI_Getv(lapi_handle_t hndl, uint tgt, lapi_vec_t* tgt_vec, lapi_vec_t* org_vec,
              lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr) LAPI_NOEXCEPT;
int LAPI_Amsend(lapi_handle_t hndl, uint tgt, void* hdr_hdl, void* uhdr, uint uhdr_len, void* udata,
                ulong udata_len, lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr,
                lapi_cntr_t* cmpl_cntr) LAPI_NOEXCEPT;
int LAPI_Amsendv(lapi_handle_t hndl, uint tgt, void* hdr_hdl, void* uhdr, uint uhdr_len,
                 lapi_vec_t* org_vec, lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr,
                 lapi_cntr_t* cmpl_cntr) LAPI_NOEXCEPT;
/* COMPARE_AND_SWAP: in_val is {compare, swap}, and *prev_tgt_val gets 1 if it swapped, else 0. */
int LAPI_Rmw(lapi_handle_t hndl, RMW_ops_t op, uint tgt, int* tgt_var, int* in_val,
             int* prev_tgt_val, lapi_cntr_t* org_cntr) LAPI_NOEXCEPT;
int LAPI_Rmw64(lapi_handle_t hndl, RMW_ops_t op, uint tgt, long long* tgt_var, long long* in_val,
               long long* prev_tgt_val, lapi_cntr_t* org_cntr) LAPI_NOEXCEPT;

typedef enum LAPI_ANY_INT {
  LAPI_GET_XFER = 0,
  LAPI_AM_XFER,
  LAPI_RMW_XFER,
  LAPI_PUT_XFER,
  LAPI_GETV_XFER,
  LAPI_PUTV_XFER,
  LAPI_AMV_XFER,
  LAPI_RDMA_XFER,
  LAPI_DGSP_XFER, /* not supported: LAPI_ERR_XFER_CMD */
  LAPI_AM_LW_XFER /* header and data may be reused at once */
} lapi_xfer_type_t;

typedef struct {
  uint src;    /* the target of the operation */
  uint reason; /* LAPI_SUCCESS, or why it failed */
  ulong reserve[6];
} lapi_sh_info_t;

/* Called when the origin's memory may be reused, perhaps before LAPI_Xfer returns. */
typedef void(scompl_hndlr_t)(lapi_handle_t* hndl, void* completion_param, lapi_sh_info_t* info);

typedef struct {
  lapi_xfer_type_t Xfer_type;
  int flags;
  uint tgt;
  lapi_long_t hdr_hdl;
  uint uhdr_len;
  void* uhdr;
  void* udata;
  ulong udata_len;
  scompl_hndlr_t* shdlr;
  void* sinfo;
  lapi_long_t tgt_cntr;
  lapi_cntr_t* org_cntr;
  lapi_cntr_t* cmpl_cntr;
} lapi_am_t;

typedef struct {
  lapi_xfer_type_t Xfer_type;
  int flags;
  uint tgt;
  lapi_long_t hdr_hdl;
  uint uhdr_len;
  void* uhdr;
  lapi_vec_t* org_vec;
  scompl_hndlr_t* shdlr;
  void* sinfo;
  lapi_long_t tgt_cntr;
  lapi_cntr_t* org_cntr;
  lapi_cntr_t* cmpl_cntr;
} lapi_amv_t;

typedef struct {
  lapi_xfer_type_t Xfer_type;
  int flags;
  uint tgt;
  lapi_long_t hdr_hdl;
  uint uhdr_len;
  void* uhdr;
  void* udata;
  ulong udata_len;
  lapi_dg_handle_t dgsp;
  lapi_status_t status;
  scompl_hndlr_t* shdlr;
  void* sinfo;
  lapi_long_t tgt_cntr;
  lapi_cntr_t* org_cntr;
  lapi_cntr_t* cmpl_cntr;
} lapi_amdgsp_t;

typedef struct {
  lapi_xfer_type_t Xfer_type;
  int flags;
  uint tgt;
  lapi_long_t tgt_addr;
  void* org_addr;
  ulong len;
  scompl_hndlr_t* shdlr;
  void* sinfo;
  lapi_long_t tgt_cntr;
  lapi_cntr_t* org_cntr;
  lapi_cntr_t* cmpl_cntr;
} lapi_put_t;

typedef struct {
  lapi_xfer_type_t Xfer_type;
  int flags;
  uint tgt;
  lapi_long_t tgt_addr;
  void* org_addr;
  ulong len;
  compl_hndlr_t* chndlr; /* called when the data has arrived, as a completion handler */
  void* cinfo;
  lapi_long_t tgt_cntr;
  lapi_cntr_t* org_cntr;
} lapi_get_t;

typedef struct {
  lapi_xfer_type_t Xfer_type;
  int flags;
  uint tgt;
  lapi_lvec_t* tgt_vec;
  lapi_vec_t* org_vec;
  scompl_hndlr_t* shdlr;
  void* sinfo;
  lapi_long_t tgt_cntr;
  lapi_cntr_t* org_cntr;
  lapi_cntr_t* cmpl_cntr;
} lapi_putv_t;

typedef struct {
  lapi_xfer_type_t Xfer_type;
  int flags;
  uint tgt;
  lapi_lvec_t* tgt_vec;
  lapi_vec_t* org_vec;
  compl_hndlr_t* chndlr;
  void* cinfo;
  lapi_long_t tgt_cntr;
  lapi_cntr_t* org_cntr;
} lapi_getv_t;

typedef struct {
  lapi_xfer_type_t Xfer_type;
  int flags;
  Rmw_ops_t op;
  uint tgt;
  uint size; /* 32 or 64 bits */
  lapi_long_t tgt_var;
  void* in_val;
  void* prev_tgt_val;
  scompl_hndlr_t* shdlr;
  void* sinfo;
  lapi_cntr_t* org_cntr;
} lapi_rmw_t;

/* A transfer between memory that both sides have translated: see lapi_get_pvo_t. */
typedef enum LAPI_ANY_INT { LAPI_RDMA_PUT = 1, LAPI_RDMA_GET = 2 } lapi_rdma_op_t;
typedef unsigned short lapi_rdma_tag_t;
typedef uint lapi_user_cxt_t;
typedef lapi_long_t lapi_user_pvo_t;

typedef struct {
  lapi_xfer_type_t Xfer_type;
  uint tgt;
  uint op;                  /* one of lapi_rdma_op_t */
  lapi_rdma_tag_t rdma_tag; /* not used */
  lapi_user_cxt_t remote_cxt;
  lapi_user_pvo_t src_pvo; /* of the caller's memory, also for a get */
  lapi_user_pvo_t tgt_pvo;
  lapi_long_t src_offset;
  lapi_long_t tgt_offset;
  ulong len;
  scompl_hndlr_t* shdlr; /* a get: called when the data has arrived */
  void* sinfo;
  lapi_cntr_t* org_cntr; /* grows when the data is at its destination */
} lapi_hwxfer_t;

typedef union {
  lapi_xfer_type_t Xfer_type;
  lapi_get_t Get;
  lapi_am_t Am;
  lapi_rmw_t Rmw;
  lapi_put_t Put;
  lapi_getv_t Getv;
  lapi_putv_t Putv;
  lapi_amv_t Amv;
  lapi_amdgsp_t Dgsp;
  lapi_hwxfer_t HwXfer;
} lapi_xfer_t;

/* Any of the transfers above; with a send completion handler, if shdlr is not NULL. */
int LAPI_Xfer(lapi_handle_t hndl, lapi_xfer_t* xfer_cmd) LAPI_NOEXCEPT;

/* ---- Utilities ------------------------------------------------------------------------------- */

typedef enum LAPI_ANY_INT {
  LAPI_REMOTE_RCXT = 1, /* lapi_remote_cxt_t */
  LAPI_XLATE_ADDRESS,   /* lapi_get_pvo_t */
  LAPI_GET_THREAD_FUNC  /* lapi_thread_func_t */
} lapi_util_type_t;

typedef enum LAPI_ANY_INT { LAPI_RDMA_ACQUIRE = 1, LAPI_RDMA_RELEASE = 2 } lapi_rdma_request_t;

/* Acquires usr_rcxt, the permission for LAPI_RDMA_XFER to task `dest`, or releases it. */
typedef struct {
  lapi_util_type_t Util_type;
  lapi_rdma_request_t operation;
  uint dest;
  lapi_user_cxt_t usr_rcxt;
} lapi_remote_cxt_t;

/* Acquires usr_pvo, which names the memory at `address` for LAPI_RDMA_XFER of any task, or releases
 * it. */
typedef struct {
  lapi_util_type_t Util_type;
  uint length;
  lapi_user_pvo_t usr_pvo;
  void* address;
  lapi_rdma_request_t operation;
} lapi_get_pvo_t;

/* Returns the functions of the context's lock, which its owner may lock again. The owner may call
 * everything; no other thread serves messages or runs header handlers meanwhile. */
typedef struct {
  lapi_util_type_t Util_type;
  int (*mutex_lock)(lapi_handle_t hndl);
  int (*mutex_unlock)(lapi_handle_t hndl);  /* LAPI_ERR_BAD_PARAMETER for all but the owner */
  int (*mutex_trylock)(lapi_handle_t hndl); /* EBUSY if another thread has it */
} lapi_thread_func_t;

typedef union {
  lapi_util_type_t Util_type;
  lapi_remote_cxt_t RemoteCxt;
  lapi_get_pvo_t Pvo;
  lapi_thread_func_t ThreadFunc;
} lapi_util_t;

/* LAPI_ERR_UTIL_CMD for any other command. */
int LAPI_Util(lapi_handle_t hndl, lapi_util_t* util_cmd) LAPI_NOEXCEPT;

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
