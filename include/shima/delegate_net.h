/*
 * delegate_net.h: messages, collective operations and collective file access for tasks that are no
 * MPI processes.
 *
 * The delegatee (delegate.h) is an MPI process, for example a rank that `shima run --one-space` has
 * made a task, and carries out what is asked for here by MPI calls on the requester's own memory;
 * delegate_mpi.h is its side.  Its requesters never call MPI, need not be linked with it, and name
 * each other by the rank of the delegatee and a tag.
 *
 *   delegate_seat* seat;
 *   delegate_join("net", -1, NULL, &seat);
 *   delegate_send(seat, data, size, 1, 7);                  to a requester of rank 1's
 *   delegate_allreduce(seat, sums, 10, DELEGATE_DOUBLE, DELEGATE_SUM);
 *
 * One request stands for many transfers where the operation is collective: it is made by the
 * delegatees alone, once all members of theirs have asked.  Members are as many requesters of each
 * delegatee as it was told of, and all make the same collective calls in the same order.  When one
 * of them leaves or ends, those calls fail for all from then on.
 *
 * Calls return what those of delegate.h do.  The operations are offered by number as well, to be
 * used with delegate_start.  Part of libshima-pvas.
 */
#ifndef SHIMA_DELEGATE_NET_H
#define SHIMA_DELEGATE_NET_H

#include "delegate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a delegatee that uses MPI does, and the arguments in a delegate_request. */
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

/* Returns how many bytes have come.  A message that is longer is an error. */
PVAS_API int64_t delegate_receive(delegate_seat* seat, void* data, size_t size, int rank,
                                  int tag) PVAS_NOEXCEPT;

/* Opens memory of the caller's, or of whoever's in its space, to delegate_put, until
   delegate_conceal or until the caller leaves its seat. */
PVAS_API int delegate_expose(delegate_seat* seat, void* memory, size_t size) PVAS_NOEXCEPT;
PVAS_API int delegate_conceal(delegate_seat* seat, void* memory) PVAS_NOEXCEPT;

/* Writes to memory that a requester of `rank` has exposed, and returns when it is there. */
PVAS_API int64_t delegate_put(delegate_seat* seat, const void* data, size_t size, int rank,
                              uint64_t address) PVAS_NOEXCEPT;

/* ---- by all members ----------------------------------------------------------------------- */

PVAS_API int delegate_barrier(delegate_seat* seat) PVAS_NOEXCEPT;

/* The data of one member of `rank`, which says so by `is_mine`, come to all. */
PVAS_API int delegate_broadcast(delegate_seat* seat, void* data, size_t size, int rank,
                                int is_mine) PVAS_NOEXCEPT;

enum delegate_type { DELEGATE_INT32, DELEGATE_INT64, DELEGATE_FLOAT, DELEGATE_DOUBLE };
enum delegate_reduction { DELEGATE_SUM, DELEGATE_MIN, DELEGATE_MAX };

/* Everybody's `count` elements are reduced, and everybody gets the result in place of its own. */
PVAS_API int delegate_allreduce(delegate_seat* seat, void* data, size_t count,
                                enum delegate_type type,
                                enum delegate_reduction reduction) PVAS_NOEXCEPT;

/* Some bytes of a file, and where they are in memory. */
typedef struct delegate_piece {
  int64_t offset;
  void* data;
  size_t size;
} delegate_piece;

/* The pieces of all members are read or written by one collective MPI-IO call of the delegatees.
   `file` is the number that delegate_mpi_file gave.  Pieces may come in any order; those of a write
   must not overlap, whoever's they are.  Returns the number of bytes. */
PVAS_API int64_t delegate_read_all(delegate_seat* seat, int file, const delegate_piece* pieces,
                                   size_t count) PVAS_NOEXCEPT;
PVAS_API int64_t delegate_write_all(delegate_seat* seat, int file, const delegate_piece* pieces,
                                    size_t count) PVAS_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
