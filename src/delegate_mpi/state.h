/* The state of a delegatee that uses MPI, and the functions that its parts share. */
#ifndef SHIMA_DELEGATE_MPI_STATE_H
#define SHIMA_DELEGATE_MPI_STATE_H

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shima/delegate_mpi.h"

/* The number of requests in a seat's ring. */
#define DELEGATE_MPI_QUEUE   16
#define DELEGATE_MPI_FILES   64
#define DELEGATE_MPI_NO_SEAT UINT64_MAX

/* A requester that takes part in collective calls, and its pending ones. */
typedef struct delegate_mpi_member {
  uint64_t seat;
  unsigned first, count;
  delegate_job jobs[DELEGATE_MPI_QUEUE];
} delegate_mpi_member;

typedef struct delegate_mpi_exposure {
  uint64_t seat;
  void* address;
} delegate_mpi_exposure;

/* A piece of a collective file access, and the member it belongs to. */
typedef struct delegate_mpi_part {
  delegate_piece piece;
  int member;
  int source;     /* an earlier part that has this one's first `shared` bytes */
  int64_t shared; /* not in the view */
  int64_t moved;
} delegate_mpi_part;

typedef enum { DELEGATE_MPI_GATHER, DELEGATE_MPI_AGREE, DELEGATE_MPI_ACT } delegate_mpi_phase;

/* The ranks agree on the worst of these values before a collective call. */
enum { DELEGATE_MPI_FINE, DELEGATE_MPI_DIFFERS, DELEGATE_MPI_LEFT };

struct delegate_mpi {
  delegate_desk* desk;
  MPI_Comm messages, rounds;
  MPI_Win window; /* or MPI_WIN_NULL */
  int rank, ranks;
  delegate_mpi_options options;
  int stopping;

  /* pending single requests: parallel arrays for MPI_Testsome */
  int count, room;
  MPI_Request* requests;
  delegate_job* jobs;
  int* indices;
  MPI_Status* statuses;

  delegate_mpi_exposure* exposed;
  int exposed_count, exposed_room;

  /* the current collective call of the members; one at a time */
  delegate_mpi_member* members;
  int member_count, left_count;
  int is_broken; /* a member of this rank has left */
  int is_over;   /* all ranks know that a member has left */
  delegate_mpi_phase phase;
  int64_t agreed[3];
  MPI_Request round;

  MPI_File files[DELEGATE_MPI_FILES];
  int file_count;
  delegate_mpi_part* parts; /* sorted by offset */
  int part_count;
  MPI_Datatype view, memory; /* of the parts; or MPI_DATATYPE_NULL */
  MPI_Status file_status;
};

static inline int64_t delegate_mpi_errno(int mpi_error) {
  return mpi_error == MPI_SUCCESS ? 0 : -EIO;
}

static inline void delegate_mpi_answer(delegate_mpi* net, const delegate_job* job, int64_t value) {
  /* Fails only for an invalid job. */
  (void)delegate_finish(net->desk, job, value);
}

/* The request of a member in the current collective call. */
static inline delegate_job* delegate_mpi_head(delegate_mpi* net, int member) {
  delegate_mpi_member* one = &net->members[member];
  return &one->jobs[one->first % DELEGATE_MPI_QUEUE];
}

/* The new capacity of an array that is full. */
static inline int delegate_mpi_more(int room) { return room ? 2 * room : 64; }

/* files.c */
void delegate_mpi_free_parts(delegate_mpi* net);
int delegate_mpi_prepare_file(delegate_mpi* net);
int delegate_mpi_begin_file(delegate_mpi* net);
void delegate_mpi_finish_file(delegate_mpi* net, int64_t* bytes);

/* messages.c */
int64_t delegate_mpi_send(void* context, const delegate_job* job);
int64_t delegate_mpi_receive(void* context, const delegate_job* job);
int64_t delegate_mpi_put(void* context, const delegate_job* job);
int64_t delegate_mpi_expose(void* context, const delegate_job* job);
int64_t delegate_mpi_conceal_at(delegate_mpi* net, int place);
int64_t delegate_mpi_conceal(void* context, const delegate_job* job);
void delegate_mpi_drop_messages(delegate_mpi* net, uint64_t seat);
int delegate_mpi_progress_messages(delegate_mpi* net);

/* rounds.c */
int64_t delegate_mpi_take_part(void* context, const delegate_job* job);
int delegate_mpi_progress_rounds(delegate_mpi* net);

#endif
