/*
 * delegate.h: one task executes requests for others.
 *
 * A *delegatee* opens a desk, which has a name in its space (pvas.h), and serves it.  *Requesters*,
 * tasks of the same space, take seats at the desk and submit requests: to write bytes to a file
 * that is open in the delegatee, or an operation that the program defines, such as a message to
 * another node.  Requests and answers go through rings in shared memory.  A small payload is copied
 * into the request; for a large one the request has only the address, and the delegatee accesses
 * the requester's memory.
 *
 *   delegate_desk* desk;                                    the delegatee:
 *   delegate_open("disk", NULL, &desk);
 *   delegate_serve(desk, -1);
 *
 *   delegate_seat* seat;                                    a requester:
 *   delegate_join("disk", -1, NULL, &seat);
 *   delegate_write(seat, 3, data, size, offset);            3 is a descriptor of the delegatee's
 *   delegate_leave(seat);
 *
 * A delegation costs a round trip between two cores, so it pays for coarse operations: one request
 * for a whole collective write rather than one for each piece.
 *
 * A waiting process sleeps, unless it is told to spin.  When a delegatee's process ends, its
 * requesters' calls fail with PVAS_ERR_LOST; when a requester's does, the delegatee frees its seat.
 * Calls return 0 or a number, or a negative PVAS_ERR_ code, for which pvas_error_message() has a
 * text.  One thread at a time serves a desk, and a seat belongs to one thread: other threads
 * join with separate seats.  Part of libshima-pvas.  Manual pages: delegate(3) and one for
 * every call.
 */
#ifndef SHIMA_DELEGATE_H
#define SHIMA_DELEGATE_H

#include "pvas.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- delegatees --------------------------------------------------------------------------- */

typedef struct delegate_desk delegate_desk;

/* All zero, or NULL instead of options, selects the defaults. */
typedef struct delegate_options {
  unsigned seats;   /* of a desk: 1 to 512; 0: 64 */
  unsigned spin_us; /* poll for so long before sleeping; only if the caller has its own core */
  int inline_bytes; /* of a seat: larger payloads are passed by address; at most 4096; 0: the usual
                       limit, -1: all by address */
  int group;        /* of a desk, 1: for tasks of all spaces of the caller's group */
} delegate_options;

/* Creates a desk that requesters find by its name, of at most 63 bytes.  The caller must be a task.
   The desk's memory, 66 KiB for each seat that was ever taken, stays until the task ends; that of a
   desk for a group, 66 KiB for each seat, until the group ends. */
PVAS_API int delegate_open(const char* name, const delegate_options* options,
                           delegate_desk** desk) PVAS_NOEXCEPT;

/* A request, as passed to the function that executes it. */
typedef struct delegate_job {
  int operation;
  int requester; /* the task that sent it; -1: one of another space */
  int64_t arguments[3];
  void* data; /* in the requester's memory, or a copy */
  size_t size;
  uint64_t id[2]; /* for delegate_finish */
} delegate_job;

/* Executes a request, in the thread that serves, and returns the answer's value, or a negated errno
   value; or DELEGATE_LATER, if delegate_finish will send the answer. */
typedef int64_t (*delegate_function)(void* context, const delegate_job* job);
#define DELEGATE_LATER INT64_MIN

/* An operation that the program defines: numbers from 32 to 255, and from 4 those of
   delegate_net.h.  Must be called before serving.  DELEGATE_LEFT is not a request: that function is
   called when the delegatee detects that a requester has left or ended; its result is ignored. */
#define DELEGATE_FIRST_OPERATION 32
#define DELEGATE_LEFT            0
PVAS_API int delegate_offer(delegate_desk* desk, int operation, delegate_function function,
                            void* context) PVAS_NOEXCEPT;

/* Answers a job whose function has returned or will return DELEGATE_LATER.  From any thread. */
PVAS_API int delegate_finish(delegate_desk* desk, const delegate_job* job,
                             int64_t value) PVAS_NOEXCEPT;

/* Serves requests until delegate_stop, or until there was none for `timeout_ms` (negative: no
   limit; 0: serves the pending ones).  Returns how many it served. */
PVAS_API int64_t delegate_serve(delegate_desk* desk, int timeout_ms) PVAS_NOEXCEPT;

/* Waits for a request, at most `timeout_ms`, serves those that are pending by then, and returns, so
   that the caller can do other work. */
PVAS_API int64_t delegate_serve_some(delegate_desk* desk, int timeout_ms) PVAS_NOEXCEPT;

/* Ends delegate_serve, or its next call.  From any thread, an operation, or a signal handler. */
PVAS_API void delegate_stop(delegate_desk* desk) PVAS_NOEXCEPT;

/* Requesters that still wait for an answer get PVAS_ERR_LOST.  All jobs must be finished. */
PVAS_API void delegate_close(delegate_desk* desk) PVAS_NOEXCEPT;

/* ---- requesters --------------------------------------------------------------------------- */

typedef struct delegate_seat delegate_seat;

/* Takes a seat at a desk; waits for the desk and for a free seat, at most `timeout_ms` (negative:
   no limit).  A delegatee of another space can access only memory of pvas_share_alloc: other
   payloads are copied there and back if they are larger than 4096 bytes. */
PVAS_API int delegate_join(const char* name, int timeout_ms, const delegate_options* options,
                           delegate_seat** seat) PVAS_NOEXCEPT;

/* Like pread(2), pwrite(2) and fdatasync(2), on a file descriptor of the delegatee. */
PVAS_API int64_t delegate_read(delegate_seat* seat, int file, void* data, size_t size,
                               int64_t offset) PVAS_NOEXCEPT;
PVAS_API int64_t delegate_write(delegate_seat* seat, int file, const void* data, size_t size,
                                int64_t offset) PVAS_NOEXCEPT;
PVAS_API int delegate_sync(delegate_seat* seat, int file) PVAS_NOEXCEPT;

/* The direction of a request's payload. */
enum delegate_direction {
  DELEGATE_OUT, /* the delegatee reads it */
  DELEGATE_IN,  /* the delegatee writes it; the answer's value is the number of bytes */
  DELEGATE_BOTH
};

/* Operations that every delegatee has; see delegate_start. */
enum { DELEGATE_FILE_READ = 1, DELEGATE_FILE_WRITE = 2, DELEGATE_FILE_SYNC = 3 };

typedef struct delegate_request {
  int operation; /* the desk's own, or one of those above, with the file and offset as arguments */
  int64_t arguments[3];
  void* data;
  size_t size;
  enum delegate_direction direction;
} delegate_request;

/* Submits a request, waits, and returns the answer's value.  An operation that failed, or returned
   a negative value, is a negative PVAS_ERR_. */
PVAS_API int64_t delegate_call(delegate_seat* seat, const delegate_request* request) PVAS_NOEXCEPT;

/* The same in two steps, for at most 16 requests at a time: delegate_wait returns the answer of the
   request whose number delegate_start returned.  Between the two the delegatee owns the data. */
PVAS_API int delegate_start(delegate_seat* seat, const delegate_request* request,
                            uint64_t* number) PVAS_NOEXCEPT;
PVAS_API int64_t delegate_wait(delegate_seat* seat, uint64_t number) PVAS_NOEXCEPT;

/* 1 if delegate_wait would not block, else 0. */
PVAS_API int delegate_test(delegate_seat* seat, uint64_t number) PVAS_NOEXCEPT;

/* Waits for pending requests, and frees the seat. */
PVAS_API void delegate_leave(delegate_seat* seat) PVAS_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
