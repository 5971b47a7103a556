/* Collective calls of members.
 *
 * A round is one such call.  A rank that has the requests of all its members announces the call to
 * the other ranks.  Only when all ranks have announced the same call, each rank makes it once, so
 * that no rank is ever left alone in it.  The same agreement reports that a member has left: then
 * all pending and later calls fail on all ranks, and no further round begins.  A barrier is the
 * agreement alone. */
#include "delegate_mpi/state.h"

static int delegate_mpi_is_member(const delegate_mpi* net, uint64_t seat) {
  for (int i = 0; i < net->member_count; i++)
    if (net->members[i].seat == seat) return 1;
  return 0;
}

int64_t delegate_mpi_take_part(void* context, const delegate_job* job) {
  delegate_mpi* net = (delegate_mpi*)context;
  if (net->is_over || net->is_broken) return -ESRCH;
  if (!delegate_mpi_is_member(net, job->id[0])) {
    if (net->member_count == net->options.members) return -EPERM;
    net->members[net->member_count].count = net->members[net->member_count].first = 0;
    net->members[net->member_count++].seat = job->id[0];
  }
  int i = 0;
  while (net->members[i].seat != job->id[0]) i++;
  delegate_mpi_member* one = &net->members[i];
  one->jobs[(one->first + one->count++) % DELEGATE_MPI_QUEUE] = *job;
  return DELEGATE_LATER;
}

static int delegate_mpi_all_ask(const delegate_mpi* net) {
  for (int i = 0; i < net->member_count; i++)
    if (net->members[i].count == 0) return 0;
  return net->member_count > 0 && net->member_count == net->options.members;
}

static MPI_Datatype delegate_mpi_type(int64_t type) {
  switch (type) {
    case DELEGATE_INT32:
      return MPI_INT32_T;
    case DELEGATE_INT64:
      return MPI_INT64_T;
    case DELEGATE_FLOAT:
      return MPI_FLOAT;
    case DELEGATE_DOUBLE:
      return MPI_DOUBLE;
    default:
      return MPI_DATATYPE_NULL;
  }
}

static MPI_Op delegate_mpi_operator(int64_t reduction) {
  switch (reduction) {
    case DELEGATE_SUM:
      return MPI_SUM;
    case DELEGATE_MIN:
      return MPI_MIN;
    case DELEGATE_MAX:
      return MPI_MAX;
    default:
      return MPI_OP_NULL;
  }
}

/* A digest of the values that must be the same for all members of all ranks. */
static int64_t delegate_mpi_signature(const delegate_job* job) {
  uint64_t all = (uint64_t)job->operation;
  const int is_file = job->operation == DELEGATE_READ_ALL || job->operation == DELEGATE_WRITE_ALL;
  const uint64_t parts[] = {(uint64_t)job->arguments[0],
                            job->operation == DELEGATE_BROADCAST ? 0 : (uint64_t)job->arguments[1],
                            (uint64_t)job->arguments[2], is_file ? 0 : (uint64_t)job->size};
  for (int i = 0; i < 4; i++) all = (all ^ parts[i]) * UINT64_C(0x9e3779b97f4a7c15) + (all >> 29);
  return (int64_t)(all >> 2);
}

/* The member of this rank whose data are broadcast; -1: not exactly one claims it. */
static int delegate_mpi_source(delegate_mpi* net) {
  int source = -1, count = 0;
  for (int i = 0; i < net->options.members; i++)
    if (delegate_mpi_head(net, i)->arguments[1] == 1) source = i, count++;
  return count == 1 ? source : -1;
}

static int delegate_mpi_is_sound(delegate_mpi* net) {
  const delegate_job* job = delegate_mpi_head(net, 0);
  for (int i = 1; i < net->options.members; i++)
    if (delegate_mpi_signature(delegate_mpi_head(net, i)) != delegate_mpi_signature(job)) return 0;
  if (job->operation == DELEGATE_BARRIER) return 1;
  if (job->operation == DELEGATE_READ_ALL || job->operation == DELEGATE_WRITE_ALL)
    return delegate_mpi_prepare_file(net);
  if (job->size > INT_MAX) return 0;
  if (job->operation == DELEGATE_BROADCAST)
    return job->arguments[0] >= 0 && job->arguments[0] < net->ranks &&
           (job->arguments[0] != net->rank || delegate_mpi_source(net) >= 0);
  const MPI_Datatype type = delegate_mpi_type(job->arguments[0]);
  int each = 0;
  if (type == MPI_DATATYPE_NULL || delegate_mpi_operator(job->arguments[1]) == MPI_OP_NULL)
    return 0;
  MPI_Type_size(type, &each);
  return job->arguments[2] >= 0 && (uint64_t)job->arguments[2] * (uint64_t)each == job->size;
}

static void delegate_mpi_propose(delegate_mpi* net, int64_t verdict) {
  net->agreed[0] = verdict;
  net->agreed[1] = net->agreed[2] = 0;
  if (verdict == DELEGATE_MPI_FINE) {
    net->agreed[1] = delegate_mpi_signature(delegate_mpi_head(net, 0));
    net->agreed[2] = -net->agreed[1];
  }
  MPI_Iallreduce(MPI_IN_PLACE, net->agreed, 3, MPI_INT64_T, MPI_MAX, net->rounds, &net->round);
  net->phase = DELEGATE_MPI_AGREE;
}

/* Answers one request of each member; `bytes`: their values, or NULL for `value`. */
static void delegate_mpi_answer_all(delegate_mpi* net, int64_t value, const int64_t* bytes) {
  for (int i = 0; i < net->member_count; i++) {
    delegate_mpi_member* one = &net->members[i];
    if (one->count == 0) continue;
    const delegate_job job = *delegate_mpi_head(net, i);
    one->first++;
    one->count--;
    delegate_mpi_answer(net, &job, bytes ? bytes[i] : value);
  }
}

/* MPI works on the data of the first member; the data of the others are copied in and out. */
static int delegate_mpi_begin(delegate_mpi* net) {
  const delegate_job* job = delegate_mpi_head(net, 0);
  net->round = MPI_REQUEST_NULL;
  if (job->operation == DELEGATE_BARRIER) return MPI_SUCCESS;
  if (job->operation == DELEGATE_BROADCAST) {
    const int is_here = job->arguments[0] == net->rank;
    if (is_here) job = delegate_mpi_head(net, delegate_mpi_source(net));
    return MPI_Ibcast(job->data, (int)job->size, MPI_BYTE, (int)job->arguments[0], net->rounds,
                      &net->round);
  }
  if (job->operation != DELEGATE_ALLREDUCE) return delegate_mpi_begin_file(net);
  const MPI_Datatype type = delegate_mpi_type(job->arguments[0]);
  const MPI_Op op = delegate_mpi_operator(job->arguments[1]);
  const int count = (int)job->arguments[2];
  for (int i = 1; i < net->options.members; i++)
    MPI_Reduce_local(delegate_mpi_head(net, i)->data, job->data, count, type, op);
  return MPI_Iallreduce(MPI_IN_PLACE, job->data, count, type, op, net->rounds, &net->round);
}

static void delegate_mpi_spread(delegate_mpi* net) {
  int from = 0;
  if (delegate_mpi_head(net, 0)->operation == DELEGATE_BROADCAST &&
      delegate_mpi_head(net, 0)->arguments[0] == net->rank)
    from = delegate_mpi_source(net);
  const delegate_job* job = delegate_mpi_head(net, from);
  for (int i = 0; job->size > 0 && i < net->options.members; i++)
    if (i != from) memcpy(delegate_mpi_head(net, i)->data, job->data, job->size);
}

static void delegate_mpi_end_round(delegate_mpi* net, int error) {
  const int operation = delegate_mpi_head(net, 0)->operation;
  const int is_file = operation == DELEGATE_READ_ALL || operation == DELEGATE_WRITE_ALL;
  int64_t* bytes = is_file ? (int64_t*)calloc((size_t)net->options.members, sizeof *bytes) : NULL;
  if (bytes && error == MPI_SUCCESS) delegate_mpi_finish_file(net, bytes);
  if (!is_file && operation != DELEGATE_BARRIER && error == MPI_SUCCESS) delegate_mpi_spread(net);
  delegate_mpi_free_parts(net);
  net->phase = DELEGATE_MPI_GATHER;
  const int64_t value = is_file && !bytes ? -ENOMEM : delegate_mpi_errno(error);
  delegate_mpi_answer_all(net, value, error == MPI_SUCCESS ? bytes : NULL);
  free(bytes);
}

static void delegate_mpi_judge_round(delegate_mpi* net) {
  if (net->agreed[0] == DELEGATE_MPI_FINE && net->agreed[1] == -net->agreed[2]) {
    const int error = delegate_mpi_begin(net);
    net->phase = DELEGATE_MPI_ACT;
    if (error != MPI_SUCCESS) delegate_mpi_end_round(net, error);
    return;
  }
  delegate_mpi_free_parts(net);
  net->phase = DELEGATE_MPI_GATHER;
  net->is_over = net->agreed[0] == DELEGATE_MPI_LEFT;
  const int answers = net->is_over ? DELEGATE_MPI_QUEUE : 1;
  for (int i = 0; i < answers; i++)
    delegate_mpi_answer_all(net, net->is_over ? -ESRCH : -EINVAL, NULL);
}

/* Proceeds as far as possible without waiting; 1: some request was answered. */
int delegate_mpi_progress_rounds(delegate_mpi* net) {
  int done = 0;
  if (net->is_over) return 0;
  if (net->phase == DELEGATE_MPI_GATHER) {
    if (net->is_broken)
      delegate_mpi_propose(net, DELEGATE_MPI_LEFT);
    else if (delegate_mpi_all_ask(net))
      delegate_mpi_propose(net,
                           delegate_mpi_is_sound(net) ? DELEGATE_MPI_FINE : DELEGATE_MPI_DIFFERS);
    else
      return 0;
  }
  if (net->phase == DELEGATE_MPI_AGREE) {
    MPI_Test(&net->round, &done, MPI_STATUS_IGNORE);
    if (!done) return 0;
    delegate_mpi_judge_round(net);
    if (net->phase == DELEGATE_MPI_GATHER) return 1;
  }
  const int error = MPI_Test(&net->round, &done, &net->file_status);
  if (error == MPI_SUCCESS && !done) return 0;
  delegate_mpi_end_round(net, error);
  return 1;
}
