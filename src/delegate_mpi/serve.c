/* Serves a desk and MPI in turn. */
#include <sched.h>
#include <sys/select.h>

#include "delegate_mpi/state.h"

/* While requests are pending: poll for this long, and this often if others need the core; then
   pause between polls; then sleep at the desk.  MPI cannot wake a sleeper. */
#define DELEGATE_MPI_LOOK_S   0.0003
#define DELEGATE_MPI_LOOKS    200
#define DELEGATE_MPI_PAUSE_US 50
#define DELEGATE_MPI_PAUSES_S 0.02

/* As long as members are missing, a requester that leaves before its first collective call counts
   as a member: it may have been one. */
static int64_t delegate_mpi_left(void* context, const delegate_job* job) {
  delegate_mpi* net = (delegate_mpi*)context;
  int counts = net->member_count < net->options.members;
  delegate_mpi_drop_messages(net, job->id[0]);
  for (int i = 0; i < net->member_count; i++) {
    if (net->members[i].seat != job->id[0]) continue;
    net->members[i].seat = DELEGATE_MPI_NO_SEAT; /* the seat may be reused */
    counts = 1;
  }
  net->left_count += counts;
  if (counts) net->is_broken = 1;
  return 0;
}

/* For the operations of a net that was not opened. */
static int64_t delegate_mpi_refuse(void* context, const delegate_job* job) {
  (void)context;
  (void)job;
  return -EOPNOTSUPP;
}

/* Without a net: takes the offers back. */
static int delegate_mpi_offer_all(delegate_desk* desk, delegate_mpi* net) {
  static const struct {
    int operation;
    delegate_function function;
  } offers[] = {
      {DELEGATE_LEFT, delegate_mpi_left},           {DELEGATE_SEND, delegate_mpi_send},
      {DELEGATE_RECEIVE, delegate_mpi_receive},     {DELEGATE_PUT, delegate_mpi_put},
      {DELEGATE_EXPOSE, delegate_mpi_expose},       {DELEGATE_CONCEAL, delegate_mpi_conceal},
      {DELEGATE_BARRIER, delegate_mpi_take_part},   {DELEGATE_BROADCAST, delegate_mpi_take_part},
      {DELEGATE_ALLREDUCE, delegate_mpi_take_part}, {DELEGATE_READ_ALL, delegate_mpi_take_part},
      {DELEGATE_WRITE_ALL, delegate_mpi_take_part}};
  int error = 0;
  for (size_t i = 0; i < sizeof offers / sizeof *offers && error == 0; i++)
    error = delegate_offer(desk, offers[i].operation,
                           net ? offers[i].function : delegate_mpi_refuse, net);
  return error;
}

static void delegate_mpi_connect(delegate_mpi* net, MPI_Comm comm) {
  MPI_Comm_dup(comm, &net->messages);
  MPI_Comm_dup(comm, &net->rounds);
  MPI_Comm_set_errhandler(net->messages, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(net->rounds, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &net->rank);
  MPI_Comm_size(comm, &net->ranks);
  net->window = MPI_WIN_NULL;
  net->round = MPI_REQUEST_NULL;
  net->view = net->memory = MPI_DATATYPE_NULL;
  if (!net->options.puts) return;
  MPI_Win_create_dynamic(MPI_INFO_NULL, net->messages, &net->window);
  MPI_Win_set_errhandler(net->window, MPI_ERRORS_RETURN);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, net->window);
}

/* Everything that a rank may fail at alone. */
static int delegate_mpi_make(delegate_desk* desk, const delegate_mpi_options* options,
                             delegate_mpi** made) {
  if (!desk || (options && options->members < 0)) return PVAS_ERR_ARGUMENT;
  delegate_mpi* net = *made = (delegate_mpi*)calloc(1, sizeof *net);
  if (!net) return PVAS_ERR_NO_MEMORY;
  net->desk = desk;
  if (options) net->options = *options;
  net->members =
      (delegate_mpi_member*)calloc((size_t)net->options.members + 1, sizeof *net->members);
  return net->members ? delegate_mpi_offer_all(desk, net) : PVAS_ERR_NO_MEMORY;
}

static void delegate_mpi_drop(delegate_mpi* net) {
  if (!net) return;
  (void)delegate_mpi_offer_all(net->desk, NULL);
  free(net->members);
  free(net);
}

/* Where any rank has failed, all return an error.  A rank without members would never learn of
   collective calls: no rank has members, or all have. */
static int delegate_mpi_agree_to_open(const delegate_mpi_options* options, MPI_Comm comm,
                                      int error) {
  const int members = options && options->members > 0, puts = options && options->puts;
  int there_are[5] = {members, !members, puts, !puts, -error}; /* codes are negative */
  if (error) there_are[0] = there_are[1] = there_are[2] = there_are[3] = 0;
  MPI_Allreduce(MPI_IN_PLACE, there_are, 5, MPI_INT, MPI_MAX, comm);
  if (error) return error;
  if (there_are[4]) return -there_are[4];
  const int differ = (there_are[0] && there_are[1]) || (there_are[2] && there_are[3]);
  return differ ? PVAS_ERR_ARGUMENT : 0;
}

int delegate_mpi_open(delegate_desk* desk, MPI_Comm comm, const delegate_mpi_options* options,
                      delegate_mpi** net) {
  delegate_mpi* made = NULL;
  int error = net ? delegate_mpi_make(desk, options, &made) : PVAS_ERR_ARGUMENT;
  error = delegate_mpi_agree_to_open(options, comm, error);
  if (error) {
    delegate_mpi_drop(made);
    return error;
  }
  delegate_mpi_connect(made, comm);
  *net = made;
  return 0;
}

int delegate_mpi_file(delegate_mpi* net, MPI_File file) {
  if (net->file_count == DELEGATE_MPI_FILES) return PVAS_ERR_NO_MEMORY;
  net->files[net->file_count] = file;
  return net->file_count++;
}

static int delegate_mpi_progress(delegate_mpi* net) {
  const int done = delegate_mpi_progress_messages(net) + delegate_mpi_progress_rounds(net);
  int flag = 0;
  /* Puts of other ranks progress only while this process is inside MPI. */
  if (net->window != MPI_WIN_NULL)
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, net->rounds, &flag, MPI_STATUS_IGNORE);
  return done;
}

/* select() is declared even in strict C. */
static void delegate_mpi_pause(void) {
  struct timeval a_while = {0, DELEGATE_MPI_PAUSE_US};
  select(0, NULL, NULL, NULL, &a_while);
}

/* How long to sleep at the desk after `looks` polls that found nothing in `idle_s`. */
static int delegate_mpi_sleep_ms(const delegate_mpi* net, int looks, double idle_s) {
  const int is_busy = net->count > 0 || net->phase != DELEGATE_MPI_GATHER;
  if (idle_s < net->options.spin_us * 1e-6) return 0;
  if (!is_busy) return net->window != MPI_WIN_NULL ? 1 : 10;
  if (idle_s > DELEGATE_MPI_PAUSES_S) return 1;
  if (idle_s < DELEGATE_MPI_LOOK_S || looks < DELEGATE_MPI_LOOKS)
    sched_yield();
  else
    delegate_mpi_pause();
  return 0;
}

static int delegate_mpi_is_finished(delegate_mpi* net) {
  if (__atomic_load_n(&net->stopping, __ATOMIC_SEQ_CST) != 0) return 1;
  return net->options.members > 0 && net->left_count >= net->options.members;
}

MPI_Comm delegate_mpi_comm(const delegate_mpi* net) { return net->messages; }

MPI_Win delegate_mpi_window(const delegate_mpi* net) { return net->window; }

int delegate_mpi_serve(delegate_mpi* net) {
  double last = MPI_Wtime();
  int looks = 0;
  while (!delegate_mpi_is_finished(net)) {
    const int sleep_ms = delegate_mpi_sleep_ms(net, looks++, MPI_Wtime() - last);
    const int64_t served = delegate_serve_some(net->desk, sleep_ms);
    if (served < 0) return (int)served;
    if (delegate_mpi_progress(net) + served == 0) continue;
    last = MPI_Wtime();
    looks = 0;
  }
  __atomic_store_n(&net->stopping, 0, __ATOMIC_SEQ_CST);
  return 0;
}

void delegate_mpi_stop(delegate_mpi* net) {
  __atomic_store_n(&net->stopping, 1, __ATOMIC_SEQ_CST);
  delegate_stop(net->desk);
}

static void delegate_mpi_look(delegate_mpi* net) {
  if (delegate_mpi_progress(net) == 0) delegate_mpi_pause();
}

/* Waits for all ranks: others may still need this one. */
void delegate_mpi_close(delegate_mpi* net) {
  int is_everybody_here = 0;
  MPI_Request all = MPI_REQUEST_NULL;
  net->is_broken = 1;
  while (!net->is_over) delegate_mpi_look(net);
  for (int i = 0; i < net->count; i++)
    if (net->jobs[i].operation == DELEGATE_RECEIVE) MPI_Cancel(&net->requests[i]);
  MPI_Ibarrier(net->rounds, &all);
  while (!is_everybody_here || net->count > 0) {
    delegate_mpi_look(net);
    if (!is_everybody_here) MPI_Test(&all, &is_everybody_here, MPI_STATUS_IGNORE);
  }
  while (net->exposed_count > 0) delegate_mpi_conceal_at(net, 0);
  if (net->window != MPI_WIN_NULL) {
    MPI_Win_unlock_all(net->window);
    MPI_Win_free(&net->window);
  }
  MPI_Comm_free(&net->rounds);
  MPI_Comm_free(&net->messages);
  void* const owned[] = {net->requests, net->jobs,    net->indices, net->statuses,
                         net->exposed,  net->members, net};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
}
