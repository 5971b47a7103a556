/*
 * delegate_mpi.h: the delegatee's side of delegate_net.h: it makes MPI calls for its requesters.
 *
 * For an MPI program, which is compiled by its MPI's own compiler and linked with libshima-pvas and
 * the library of its MPI's family: libshima-delegate-mpich (every MPI with MPICH's ABI),
 * libshima-delegate-openmpi or libshima-delegate-abi (the standard ABI).  On each rank, which must
 * be a task of a space (shima run --one-space):
 *
 *   delegate_desk* desk;
 *   delegate_mpi* net;
 *   delegate_open("net", NULL, &desk);
 *   delegate_mpi_open(desk, MPI_COMM_WORLD, &(delegate_mpi_options){.members = 3}, &net);
 *   ... three requesters are started in the space (pvas_own, pvas_spawn) ...
 *   delegate_mpi_serve(net);                                until all three have left
 *   delegate_mpi_close(net);
 *   delegate_close(desk);
 *
 * Every request becomes a nonblocking MPI call, on the requester's own memory, and is answered once
 * that is complete, so that one thread serves many requesters; it is the only one that calls MPI.
 * Requesters' collective calls become one collective call of the delegatees.
 *
 * An MPI library that registers memory with a network does not see that a requester unmaps some:
 * there, it is to be told not to remember registrations.  Manual page: delegate_mpi_open(3).
 */
#ifndef SHIMA_DELEGATE_MPI_H
#define SHIMA_DELEGATE_MPI_H

#include <mpi.h>

#include "delegate_net.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct delegate_mpi delegate_mpi;

typedef struct delegate_mpi_options {
  int members;      /* how many requesters of this desk take part in collective calls; of no desk,
                       or of each at least one */
  int puts;         /* 1: delegate_expose and delegate_put are wanted; all ranks say the same */
  unsigned spin_us; /* look for so long, since there was something to do, before sleeping */
} delegate_mpi_options;

/* Offers the operations of delegate_net.h at a desk, for ranks of `comm`.  Collective.  Returns 0
   or a PVAS_ERR_. */
PVAS_API int delegate_mpi_open(delegate_desk* desk, MPI_Comm comm,
                               const delegate_mpi_options* options,
                               delegate_mpi** net) PVAS_NOEXCEPT;

/* Gives an open file of all of `comm` a number, for delegate_read_all and delegate_write_all.  To
   be called before serving, for the same files in the same order on all ranks.  From then on its
   view belongs to the delegatee. */
PVAS_API int delegate_mpi_file(delegate_mpi* net, MPI_File file) PVAS_NOEXCEPT;

/* Serves the desk until delegate_mpi_stop, or until as many requesters have left as there are
   members.  Returns 0, or a PVAS_ERR_ of delegate_serve. */
PVAS_API int delegate_mpi_serve(delegate_mpi* net) PVAS_NOEXCEPT;

/* Ends delegate_mpi_serve, or its next call.  From any thread, or an operation. */
PVAS_API void delegate_mpi_stop(delegate_mpi* net) PVAS_NOEXCEPT;

/* Ends what is under way: receives are cancelled.  Collective; the desk is still open after it. */
PVAS_API void delegate_mpi_close(delegate_mpi* net) PVAS_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
