/*
 * delegate_mpi.h: the delegatee's side of delegate_net.h; makes MPI calls for its requesters.
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
 * Every request becomes a nonblocking MPI call, on the requester's own memory, and is answered when
 * that call completes, so that one thread serves many requesters; only this thread calls MPI.
 * Requesters' collective calls become one collective call of the delegatees.
 *
 * An MPI library that registers memory with a network does not detect that a requester unmaps
 * memory: there, disable its cache of registrations.  Manual page: delegate_mpi_open(3).
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
  int members;      /* number of requesters of this desk in collective calls; 0 at all desks,
                       or at least 1 at each */
  int puts;         /* 1: enables delegate_expose and delegate_put; the same on all ranks */
  unsigned spin_us; /* poll for so long after the last activity before sleeping */
} delegate_mpi_options;

/* Offers the operations of delegate_net.h at a desk, for ranks of `comm`.  Collective.  Returns 0
   or a PVAS_ERR_. */
PVAS_API int delegate_mpi_open(delegate_desk* desk, MPI_Comm comm,
                               const delegate_mpi_options* options,
                               delegate_mpi** net) PVAS_NOEXCEPT;

/* Assigns a number to a file that all of `comm` have open, for delegate_read_all and
   delegate_write_all.  Must be called before serving, for the same files in the same order on all
   ranks.  From then on the delegatee controls the file's view. */
PVAS_API int delegate_mpi_file(delegate_mpi* net, MPI_File file) PVAS_NOEXCEPT;

/* The communicator that carries delegate_send and delegate_recv, for ranks that exchange messages
   with the requesters of other ranks themselves.  Owned by `net`. */
PVAS_API MPI_Comm delegate_mpi_comm(const delegate_mpi* net) PVAS_NOEXCEPT;

/* The dynamic window that delegate_put reaches, locked for all ranks; MPI_WIN_NULL without the
   option `puts`.  For ranks that attach memory of their own.  Owned by `net`. */
PVAS_API MPI_Win delegate_mpi_window(const delegate_mpi* net) PVAS_NOEXCEPT;

/* Serves the desk until delegate_mpi_stop, or until as many requesters have left as there are
   members.  Returns 0, or a PVAS_ERR_ of delegate_serve. */
PVAS_API int delegate_mpi_serve(delegate_mpi* net) PVAS_NOEXCEPT;

/* Ends delegate_mpi_serve, or its next call.  From any thread, or an operation. */
PVAS_API void delegate_mpi_stop(delegate_mpi* net) PVAS_NOEXCEPT;

/* Ends pending operations: receives are cancelled.  Collective; the desk stays open. */
PVAS_API void delegate_mpi_close(delegate_mpi* net) PVAS_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
