/*
 * delegate.h: one task has another carry out its requests.
 *
 * A *delegatee* opens a desk, which has a name in its space (pvas.h), and serves it; *requesters*,
 * tasks of the same space, take seats at it and ask for something: that bytes be written to a file
 * which is open in the delegatee, or an operation of the program's own, such as a message to
 * another node.  Requests and answers go through rings in memory that both see.  A small payload
 * travels in the request; of a large one only the address, and the delegatee works on the
 * requester's memory.
 *
 *   delegate_desk* desk;                                    the delegatee:
 *   delegate_open("disk", NULL, &desk);
 *   delegate_serve(desk, -1);
 *
 *   delegate_seat* seat;                                    a requester:
 *   delegate_join("disk", -1, NULL, &seat);
 *   delegate_write(seat, 3, data, size, offset);            3 is a file of the delegatee's
 *   delegate_leave(seat);
 *
 * A delegation costs a conversation between two cores, so it pays for work that is coarse: one
 * request for a whole collective write rather than one for each piece.
 *
 * Who waits sleeps, unless it is told to spin.  When a delegatee's process ends, its requesters'
 * calls fail with PVAS_ERR_LOST; when a requester's does, the delegatee gives its seat to others.
 * Calls return 0 or a number, or a negative PVAS_ERR_ code, for which pvas_error_message() has
 * words.  A desk is served by one thread at a time, and a seat is one thread's: others join for
 * themselves.  Part of libshima-pvas.  Manual pages: delegate(3) and one for every call.
 */
#ifndef SHIMA_DELEGATE_H
#define SHIMA_DELEGATE_H

#include "pvas.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- delegatees --------------------------------------------------------------------------- */

typedef struct delegate_desk delegate_desk;

/* All zero, or no options at all, is a good choice. */
typedef struct delegate_options {
  unsigned seats;   /* of a desk: 1 to 512; 0: 64 */
  unsigned spin_us; /* look for so long before sleeping; only with a core of one's own */
  int inline_bytes; /* of a seat: larger payloads go by their address; at most 4096; 0: the usual
                       limit, -1: all go by their address */
  int group;        /* of a desk, 1: for tasks of all spaces of the caller's group */
} delegate_options;

/* Makes a desk that requesters find by its name, of at most 63 bytes.  The caller must be a task.
   The desk's memory, 66 KiB for each seat that was ever taken, stays until the task ends; that of a
   desk for a group, 66 KiB for each seat, until the group does. */
PVAS_API int delegate_open(const char* name, const delegate_options* options,
                           delegate_desk** desk) PVAS_NOEXCEPT;

/* A request, as the function that carries it out sees it. */
typedef struct delegate_job {
  int operation;
  int requester; /* the task that asks; -1: one of another space */
  int64_t arguments[3];
  void* data; /* in the requester's memory, or a copy */
  size_t size;
  uint64_t id[2]; /* for delegate_finish */
} delegate_job;

/* Carries out a request, in the thread that serves, and returns the answer's value, or an errno
   value made negative; or DELEGATE_LATER, when delegate_finish will tell. */
typedef int64_t (*delegate_function)(void* context, const delegate_job* job);
#define DELEGATE_LATER INT64_MIN

/* An operation of one's own: numbers from 32 to 255, and from 4 those of delegate_net.h.  To be
   called before serving.  DELEGATE_LEFT is no request: that function is called once it is seen that
   a requester has left or ended, and what it returns does not matter. */
#define DELEGATE_FIRST_OPERATION 32
#define DELEGATE_LEFT            0
PVAS_API int delegate_offer(delegate_desk* desk, int operation, delegate_function function,
                            void* context) PVAS_NOEXCEPT;

/* Answers a job whose function has returned DELEGATE_LATER, or is going to.  From any thread. */
PVAS_API int delegate_finish(delegate_desk* desk, const delegate_job* job,
                             int64_t value) PVAS_NOEXCEPT;

/* Serves requests until delegate_stop, or until there was none for `timeout_ms` (negative: no
   limit; 0: serves those that wait).  Returns how many it served. */
PVAS_API int64_t delegate_serve(delegate_desk* desk, int timeout_ms) PVAS_NOEXCEPT;

/* Waits for a request for no longer than that, serves those that there are by then, and returns, so
   that the caller can look after something else. */
PVAS_API int64_t delegate_serve_some(delegate_desk* desk, int timeout_ms) PVAS_NOEXCEPT;

/* Ends delegate_serve, or its next call.  From any thread, an operation, or a signal handler. */
PVAS_API void delegate_stop(delegate_desk* desk) PVAS_NOEXCEPT;

/* Whoever still waits for an answer gets PVAS_ERR_LOST.  All jobs must be finished. */
PVAS_API void delegate_close(delegate_desk* desk) PVAS_NOEXCEPT;

/* ---- requesters --------------------------------------------------------------------------- */

typedef struct delegate_seat delegate_seat;

/* Takes a seat at a desk; waits for the desk and for a free seat, at most `timeout_ms` (negative:
   no limit).  A delegatee of another space sees only memory of pvas_share_alloc: other payloads are
   copied there and back if they are larger than 4096 bytes. */
PVAS_API int delegate_join(const char* name, int timeout_ms, const delegate_options* options,
                           delegate_seat** seat) PVAS_NOEXCEPT;

/* As pread(2), pwrite(2) and fdatasync(2), on a file descriptor of the delegatee's. */
PVAS_API int64_t delegate_read(delegate_seat* seat, int file, void* data, size_t size,
                               int64_t offset) PVAS_NOEXCEPT;
PVAS_API int64_t delegate_write(delegate_seat* seat, int file, const void* data, size_t size,
                                int64_t offset) PVAS_NOEXCEPT;
PVAS_API int delegate_sync(delegate_seat* seat, int file) PVAS_NOEXCEPT;

/* Whom the payload of a request is for. */
enum delegate_direction {
  DELEGATE_OUT, /* the delegatee reads it */
  DELEGATE_IN,  /* the delegatee writes it; the answer's value says how many bytes */
  DELEGATE_BOTH
};

/* What the delegatee does by itself; see delegate_start. */
enum { DELEGATE_FILE_READ = 1, DELEGATE_FILE_WRITE = 2, DELEGATE_FILE_SYNC = 3 };

typedef struct delegate_request {
  int operation; /* the desk's own, or one of those above, with the file and offset as arguments */
  int64_t arguments[3];
  void* data;
  size_t size;
  enum delegate_direction direction;
} delegate_request;

/* Has a request carried out and returns the answer's value.  An operation that failed, or returned
   a negative value, is a negative PVAS_ERR_. */
PVAS_API int64_t delegate_call(delegate_seat* seat, const delegate_request* request) PVAS_NOEXCEPT;

/* The same in two halves, for at most 16 requests at a time; delegate_wait gives the answer of the
   one that delegate_start gave the number of.  The data belong to the delegatee in between. */
PVAS_API int delegate_start(delegate_seat* seat, const delegate_request* request,
                            uint64_t* number) PVAS_NOEXCEPT;
PVAS_API int64_t delegate_wait(delegate_seat* seat, uint64_t number) PVAS_NOEXCEPT;

/* 1 where delegate_wait would not wait, 0 where it would. */
PVAS_API int delegate_test(delegate_seat* seat, uint64_t number) PVAS_NOEXCEPT;

/* Waits for what is under way, and gives the seat to others. */
PVAS_API void delegate_leave(delegate_seat* seat) PVAS_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
