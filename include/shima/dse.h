/*
 * dse.h: a task's view of its job under `shima dse run`: its number, the virtual topology, and its
 * neighbors by name.
 *
 *   int east = dse_neighbor("east");           in a job of `shima dse run --topology torus:4x2`
 *   if (east == DSE_ERR_NO_NEIGHBOR) ...       at the edge of a mesh
 *   dse_set_topology("ring");                  all tasks together: other neighbors from here on
 *   int right = dse_neighbor("right");
 *
 * A number of a task is the one that lapi.h and dsm.h use. A topology says which tasks are
 * neighbors, and under which names; any task can still reach any other.
 *
 *   ring:8         left and right
 *   mesh:4x2, torus:4x2, mesh:4x2x2 ...   the last dimension: west and east, also left and right;
 *                  the one before it: north and south; the one before that: down and up.
 *                  Tasks are numbered row by row: the last dimension counts fastest.
 *   hypercube:3    dim0, dim1, dim2: the task whose number differs in that bit
 *   graph:FILE     lines "TASK NAME=TASK NAME=TASK ...", with the names that these give
 *
 * In a ring, mesh or torus dim0- and dim0+, dim1- and dim1+ ... are the neighbors in the first,
 * second ... dimension.  A mesh or torus without extents has two dimensions.
 *
 * Calls return 0 or a number, or a negative DSE_ERR_ code; then dse_error_message() has a text for
 * it.  All but dse_set_topology are local and cost no message.  Several threads may make any calls
 * at once.  Manual page: dse(3).
 */
#ifndef SHIMA_DSE_H
#define SHIMA_DSE_H

#ifdef __cplusplus
#define DSE_NOEXCEPT noexcept
extern "C" {
#else
#define DSE_NOEXCEPT
#endif
#define DSE_API __attribute__((visibility("default")))

/* Their values never change. */
enum dse_error {
  DSE_ERR_ARGUMENT = -1,    /* an argument is wrong */
  DSE_ERR_NOT_A_TASK = -2,  /* `shima dse run` has not started this process */
  DSE_ERR_NO_NEIGHBOR = -3, /* the task has no neighbor of this name */
  DSE_ERR_NOT_SAME = -4,    /* the tasks have asked for different topologies */
  DSE_ERR_LOST = -5,        /* a task has ended, or cannot be reached */
  DSE_ERR_NO_MEMORY = -6,
  DSE_ERR_INTERNAL = -7
};

/* The text of the last error of a call in this thread; "" if there was none.  Valid until the next
   call of this library in this thread that fails. */
DSE_API const char* dse_error_message(void) DSE_NOEXCEPT;

DSE_API int dse_task(void) DSE_NOEXCEPT;  /* the caller's number, from 0 */
DSE_API int dse_tasks(void) DSE_NOEXCEPT; /* how many there are */

/* The topology as text, as in "torus:4x2"; a graph as "graph{0 next=1;1 next=0}".  NULL after an
   error.  Valid until the process ends. */
DSE_API const char* dse_topology(void) DSE_NOEXCEPT;

/* The number of the caller's neighbor of this name, and of another task's. */
DSE_API int dse_neighbor(const char* name) DSE_NOEXCEPT;
DSE_API int dse_neighbor_of(int task, const char* name) DSE_NOEXCEPT;

/* How many neighbors a task has; and each of them, from 0 on: returns its number, and stores its
   name unless `name` is NULL.  The name is valid until the process ends. */
DSE_API int dse_neighbors(int task) DSE_NOEXCEPT;
DSE_API int dse_neighbor_at(int task, int index, const char** name) DSE_NOEXCEPT;

/* Stores up to `most` coordinates of a task; returns how many it has: 0 in a graph. */
DSE_API int dse_coordinates(int task, int* coordinates, int most) DSE_NOEXCEPT;

/* Collective: all tasks call it with the same topology, which replaces the present one when all
   have called it.  After an error, all keep the present one.  The first call of a process uses a
   context of LAPI: its place among the calls of LAPI_Init, dsm_open and dse_set_topology must be
   the same in all tasks. */
DSE_API int dse_set_topology(const char* topology) DSE_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
