/* Messages and puts: each request is one MPI request on the requester's memory, and is answered
   when MPI completes it. */
#include "delegate_mpi/state.h"

/* Makes room for one more request; 0: out of memory. */
static int delegate_mpi_room(delegate_mpi* net) {
  if (net->count < net->room) return 1;
  const int room = delegate_mpi_more(net->room);
  const size_t count = (size_t)room;
  void* grown = realloc(net->requests, count * sizeof *net->requests);
  if (grown) net->requests = (MPI_Request*)grown;
  if (grown) grown = realloc(net->jobs, count * sizeof *net->jobs);
  if (grown) net->jobs = (delegate_job*)grown;
  if (grown) grown = realloc(net->indices, count * sizeof *net->indices);
  if (grown) net->indices = (int*)grown;
  if (grown) grown = realloc(net->statuses, count * sizeof *net->statuses);
  if (grown) net->statuses = (MPI_Status*)grown;
  if (grown) net->room = room;
  return grown != NULL;
}

static int delegate_mpi_room_to_expose(delegate_mpi* net) {
  if (net->exposed_count < net->exposed_room) return 1;
  const int room = delegate_mpi_more(net->exposed_room);
  void* grown = realloc(net->exposed, (size_t)room * sizeof *net->exposed);
  if (!grown) return 0;
  net->exposed = (delegate_mpi_exposure*)grown;
  net->exposed_room = room;
  return 1;
}

static int64_t delegate_mpi_begun(delegate_mpi* net, const delegate_job* job, int error) {
  if (error != MPI_SUCCESS) return -EIO;
  net->jobs[net->count++] = *job;
  return DELEGATE_LATER;
}

/* 0, or the reason for refusing a message. */
static int64_t delegate_mpi_judge(delegate_mpi* net, const delegate_job* job, int any) {
  const int64_t rank = job->arguments[0];
  if ((rank < 0 && !(any && rank == DELEGATE_ANY)) || rank >= net->ranks) return -EINVAL;
  if (job->size > INT_MAX) return -EMSGSIZE;
  return delegate_mpi_room(net) ? 0 : -ENOMEM;
}

int64_t delegate_mpi_send(void* context, const delegate_job* job) {
  delegate_mpi* net = (delegate_mpi*)context;
  const int64_t wrong = delegate_mpi_judge(net, job, 0);
  if (wrong) return wrong;
  if (job->arguments[1] < 0 || job->arguments[1] > INT_MAX) return -EINVAL;
  return delegate_mpi_begun(
      net, job,
      MPI_Isend(job->data, (int)job->size, MPI_BYTE, (int)job->arguments[0], (int)job->arguments[1],
                net->messages, &net->requests[net->count]));
}

int64_t delegate_mpi_receive(void* context, const delegate_job* job) {
  delegate_mpi* net = (delegate_mpi*)context;
  const int64_t wrong = delegate_mpi_judge(net, job, 1);
  if (wrong) return wrong;
  const int64_t rank = job->arguments[0], tag = job->arguments[1];
  if (tag < DELEGATE_ANY || tag > INT_MAX) return -EINVAL;
  return delegate_mpi_begun(net, job,
                            MPI_Irecv(job->data, (int)job->size, MPI_BYTE,
                                      rank == DELEGATE_ANY ? MPI_ANY_SOURCE : (int)rank,
                                      tag == DELEGATE_ANY ? MPI_ANY_TAG : (int)tag, net->messages,
                                      &net->requests[net->count]));
}

int64_t delegate_mpi_put(void* context, const delegate_job* job) {
  delegate_mpi* net = (delegate_mpi*)context;
  const int64_t wrong = delegate_mpi_judge(net, job, 0);
  if (wrong) return wrong;
  if (net->window == MPI_WIN_NULL) return -EOPNOTSUPP;
  const int size = (int)job->size;
  return delegate_mpi_begun(
      net, job,
      MPI_Rput(job->data, size, MPI_BYTE, (int)job->arguments[0], (MPI_Aint)job->arguments[1], size,
               MPI_BYTE, net->window, &net->requests[net->count]));
}

int64_t delegate_mpi_expose(void* context, const delegate_job* job) {
  delegate_mpi* net = (delegate_mpi*)context;
  void* address = (void*)(uintptr_t)job->arguments[0];
  if (net->window == MPI_WIN_NULL) return -EOPNOTSUPP;
  if (!delegate_mpi_room_to_expose(net)) return -ENOMEM;
  if (MPI_Win_attach(net->window, address, (MPI_Aint)job->arguments[1]) != MPI_SUCCESS) return -EIO;
  net->exposed[net->exposed_count].seat = job->id[0];
  net->exposed[net->exposed_count++].address = address;
  return 0;
}

int64_t delegate_mpi_conceal_at(delegate_mpi* net, int place) {
  const int error = MPI_Win_detach(net->window, net->exposed[place].address);
  net->exposed[place] = net->exposed[--net->exposed_count];
  return delegate_mpi_errno(error);
}

int64_t delegate_mpi_conceal(void* context, const delegate_job* job) {
  delegate_mpi* net = (delegate_mpi*)context;
  for (int i = 0; i < net->exposed_count; i++)
    if (net->exposed[i].address == (void*)(uintptr_t)job->arguments[0])
      return delegate_mpi_conceal_at(net, i);
  return -ENOENT;
}

/* Cleans up after a requester that has left: a receive of it may never complete. */
void delegate_mpi_drop_messages(delegate_mpi* net, uint64_t seat) {
  for (int i = 0; i < net->count; i++)
    if (net->jobs[i].id[0] == seat && net->jobs[i].operation == DELEGATE_RECEIVE)
      MPI_Cancel(&net->requests[i]);
  for (int i = net->exposed_count; i-- > 0;)
    if (net->exposed[i].seat == seat) delegate_mpi_conceal_at(net, i);
}

static int64_t delegate_mpi_outcome(delegate_mpi* net, const delegate_job* job,
                                    MPI_Status* status) {
  int cancelled = 0, count = 0;
  /* MPI_Rput completes locally; the data may not have arrived. */
  if (job->operation == DELEGATE_PUT)
    return MPI_Win_flush((int)job->arguments[0], net->window) ? -EIO : (int64_t)job->size;
  if (job->operation == DELEGATE_SEND) return (int64_t)job->size;
  MPI_Test_cancelled(status, &cancelled);
  if (cancelled) return -ECANCELED;
  MPI_Get_count(status, MPI_BYTE, &count);
  return count;
}

/* Answers the completed requests and returns their number. */
int delegate_mpi_progress_messages(delegate_mpi* net) {
  if (net->count == 0) return 0;
  int done = 0;
  const int error = MPI_Testsome(net->count, net->requests, &done, net->indices, net->statuses);
  if (done == MPI_UNDEFINED) return 0;
  for (int i = 0; i < done; i++) {
    const delegate_job* job = &net->jobs[net->indices[i]];
    MPI_Status* status = &net->statuses[i];
    const int is_wrong = error == MPI_ERR_IN_STATUS && status->MPI_ERROR != MPI_SUCCESS;
    delegate_mpi_answer(net, job, is_wrong ? -EIO : delegate_mpi_outcome(net, job, status));
  }
  int kept = 0;
  for (int i = 0; i < net->count; i++) {
    if (net->requests[i] == MPI_REQUEST_NULL) continue;
    net->requests[kept] = net->requests[i];
    net->jobs[kept++] = net->jobs[i];
  }
  net->count = kept;
  return done;
}
