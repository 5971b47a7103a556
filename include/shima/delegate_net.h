/*
 * delegate_net.h: messages, collective operations and collective file access for tasks that are not
 * MPI processes.
 *
 * The delegatee (delegate.h) is an MPI process, for example a rank that `shima run --one-space` has
 * started as a task.  It executes these requests by MPI calls on the requester's own memory;
 * delegate_mpi.h is its side.  Its requesters never call MPI, need not be linked with it, and
 * address each other by the rank of the delegatee and a tag.
 *
 *   delegate_seat* seat;
 *   delegate_join("net", -1, NULL, &seat);
 *   delegate_send(seat, data, size, 1, 7);                  to a requester of rank 1's
 *   delegate_allreduce(seat, sums, 10, DELEGATE_DOUBLE, DELEGATE_SUM);
 *
 * In a collective operation one request stands for many transfers: the delegatees alone execute it,
 * when all their members have submitted it.  Each delegatee has as many members as it was opened
 * with, and all make the same collective calls in the same order.  When one of them leaves or ends,
 * these calls fail for all members from then on.
 *
 * Calls return the same values as those of delegate.h.  The operations also have numbers, for
 * delegate_start.  Part of libshima-pvas.
 */
#ifndef SHIMA_DELEGATE_NET_H
#define SHIMA_DELEGATE_NET_H

#include "delegate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The operations of a delegatee that uses MPI, and their arguments in a delegate_request. */
enum delegate_net_operation {
  DELEGATE_SEND = 4,       /* rank, tag; DELEGATE_OUT */
  DELEGATE_RECEIVE = 5,    /* rank, tag; DELEGATE_IN */
  DELEGATE_PUT = 6,        /* rank, address there; DELEGATE_OUT */
  DELEGATE_EXPOSE = 7,     /* address, size; no payload */
  DELEGATE_CONCEAL = 8,    /* address; no payload */
  DELEGATE_BARRIER = 9,    /* no payload */
  DELEGATE_BROADCAST = 10, /* rank, whether the data are the caller's; DELEGATE_BOTH */
  DELEGATE_ALLREDUCE = 11, /* type, reduction, count; DELEGATE_BOTH */
  DELEGATE_READ_ALL = 12,  /* file; pieces, DELEGATE_OUT */
  DELEGATE_WRITE_ALL = 13  /* file; pieces, DELEGATE_OUT */
};

/* Any rank, or any tag, for delegate_receive. */
#define DELEGATE_ANY (-1)

/* Returns when the data may be changed again. */
PVAS_API int64_t delegate_send(delegate_seat* seat, const void* data, size_t size, int rank,
                               int tag) PVAS_NOEXCEPT;

/* Returns the number of bytes received.  A longer message is an error. */
PVAS_API int64_t delegate_receive(delegate_seat* seat, void* data, size_t size, int rank,
                                  int tag) PVAS_NOEXCEPT;

/* Makes memory of the caller, or of another task in its space, a destination of delegate_put, until
   delegate_conceal or until the caller leaves its seat. */
PVAS_API int delegate_expose(delegate_seat* seat, void* memory, size_t size) PVAS_NOEXCEPT;
PVAS_API int delegate_conceal(delegate_seat* seat, void* memory) PVAS_NOEXCEPT;

/* Writes to memory that a requester of `rank` has exposed, and returns when the data are there. */
PVAS_API int64_t delegate_put(delegate_seat* seat, const void* data, size_t size, int rank,
                              uint64_t address) PVAS_NOEXCEPT;

/* ---- by all members ----------------------------------------------------------------------- */

PVAS_API int delegate_barrier(delegate_seat* seat) PVAS_NOEXCEPT;

/* Copies the data of one member of `rank`, which passes `is_mine`, to all members. */
PVAS_API int delegate_broadcast(delegate_seat* seat, void* data, size_t size, int rank,
                                int is_mine) PVAS_NOEXCEPT;

enum delegate_type { DELEGATE_INT32, DELEGATE_INT64, DELEGATE_FLOAT, DELEGATE_DOUBLE };
enum delegate_reduction { DELEGATE_SUM, DELEGATE_MIN, DELEGATE_MAX };

/* Reduces the `count` elements of all members; each gets the result in place of its own. */
PVAS_API int delegate_allreduce(delegate_seat* seat, void* data, size_t count,
                                enum delegate_type type,
                                enum delegate_reduction reduction) PVAS_NOEXCEPT;

/* A range of a file, and its address in memory. */
typedef struct delegate_piece {
  int64_t offset;
  void* data;
  size_t size;
} delegate_piece;

/* The pieces of all members are read or written by one collective MPI-IO call of the delegatees.
   `file` is the number that delegate_mpi_file returned.  Pieces may come in any order; those of a
   write must not overlap, also between members.  Returns the number of bytes. */
PVAS_API int64_t delegate_read_all(delegate_seat* seat, int file, const delegate_piece* pieces,
                                   size_t count) PVAS_NOEXCEPT;
PVAS_API int64_t delegate_write_all(delegate_seat* seat, int file, const delegate_piece* pieces,
                                    size_t count) PVAS_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
